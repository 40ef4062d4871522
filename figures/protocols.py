"""Chapter 8: the same scores under three protocols; neither correlation over all nor averaging is the stricter one."""

import numpy as np
from lesson import chapter_values

from figures import _style

CASES = ("level gap", "drift", "unequal sizes")
NOTES = ("levels right, order inside wrong", "order inside right, levels drift", "small subset reversed")


def data():
    """Scores, gold scores and subset of each case, and its correlations (all, mean, wmean)."""
    chapter = chapter_values("ch08")
    shown = {"values": chapter["by_case"]}
    for name in CASES:
        shown[f"{name}: scores"], shown[f"{name}: gold"], shown[f"{name}: subset"] = chapter["cases"][name]
    return shown


def draw():
    shown = data()
    figure, axes = _style.panels(3, width=3.5, height=3.7)
    for axis, name, note, values in zip(axes, CASES, NOTES, shown["values"], strict=True):
        scores, gold, subset = (shown[f"{name}: {part}"] for part in ("scores", "gold", "subset"))
        for g in np.unique(subset):
            of = subset == g
            axis.plot(gold[of], scores[of], color=_style.COLOURS[g], marker=_style.MARKERS[g],
                      linestyle=_style.DASHES[g], linewidth=1, markersize=6, label=f"subset {g + 1}")
        axis.set_xlim(-0.4, 5.4)
        axis.set_ylim(-0.06, 1.32)
        axis.set_yticks(np.arange(0, 1.01, 0.25))
        axis.set_title(note, fontsize=10, fontweight="normal")
        axis.set_xlabel("gold score (0 to 5)")
        axis.text(0.04, 0.985, "all {:.2f}   mean {:.2f}   wmean {:.2f}".format(*values), transform=axis.transAxes,
                  va="top", fontsize=9.5, fontweight="bold")
        axis.legend(loc="lower right", fontsize=8.5)
    axes[0].set_ylabel("score given by the model")
    figure.suptitle("Averaging over subsets can score below or above one correlation over all", fontweight="bold")
    return figure
