"""Chapter 3: trails of training in the alignment-uniformity plane, and where methods end up."""

import numpy as np
from lesson import chapter_values

from figures import _style

SETTINGS = ("no dropout", "same mask", "independent masks", "paraphrase")
#: method of the right panel -> the training setting that it shares with the left one
SAME = {"no dropout": "no dropout", "dropout twins": "independent masks", "paraphrases": "paraphrase"}


def data():
    """Trails (steps / 10 + 1, 2) of uniformity and alignment, and the places of six methods in the cone world."""
    chapter = chapter_values("ch03")
    trails = {name: chapter["paths"][name] for name in SETTINGS}
    return {**trails, "methods": np.array(chapter["names"]), "places": chapter["places"]}


def draw():
    shown = data()
    figure, (left, right) = _style.panels(columns=2, width=4.7, height=4.1)
    for k, name in enumerate(SETTINGS):
        path, colour = shown[name], _style.COLOURS[k]
        left.plot(*path[1:].T, _style.MARKERS[k], color=colour, markersize=3)
        left.plot(*path.T, linestyle=_style.DASHES[k], color=colour, linewidth=1, alpha=0.7)
        left.plot(*path[-1], _style.MARKERS[k], color=colour, markersize=13 if k == 0 else 9, zorder=3 + k,
                  markeredgecolor=_style.INK)
        left.plot([], [], _style.MARKERS[k], linestyle=_style.DASHES[k], color=colour, linewidth=1.2, label=name)
    start = shown["no dropout"][0]
    left.plot(*start, "*", color=_style.INK, markersize=13)
    left.annotate("start", start, (8, 6), textcoords="offset points")
    left.legend(loc="lower left", bbox_to_anchor=(0, 0.08), handlelength=3.2, title="a point every 10 steps")
    left.set_title("trails of 400 steps, large mark: end", weight="normal")
    where = {"raw": (8, 4), "centred": (8, 4), "whitened": (-6, -18), "no dropout": (-2, 9), "dropout twins": (8, -5)}
    untrained = dict(zip(("raw", "centred", "whitened"), ("v", "P", "X"), strict=True))
    for name, (x, y, score) in zip(shown["methods"], shown["places"], strict=True):
        k = SETTINGS.index(SAME[name]) if name in SAME else None
        marker, colour = (untrained[name], _style.PALE) if k is None else (_style.MARKERS[k], _style.COLOURS[k])
        right.plot(x, y, marker, color=colour, markersize=11, markeredgecolor=_style.INK)
        right.annotate(f"{name} ({100 * score:.0f})", (x, y), where.get(name, (8, 4)), textcoords="offset points")
    right.set_title("methods from a narrow cone (100 x Spearman)", weight="normal")
    right.set(xlim=(-3.8, 0.6))
    right.text(0.98, 0.56, "colour: trained, as on the left\ngrey: not trained", transform=right.transAxes,
               ha="right", fontsize=9)
    for axis in (left, right):
        axis.set(xlabel="uniformity (log mean potential), lower is better", ylim=(-0.08, 1.62))
        axis.set_ylabel("alignment (squared distance), lower is better")
    figure.suptitle(
        "Uniformity improves in every setting; only views that differ keep alignment", x=0.01, ha="left", weight="bold"
    )
    return figure
