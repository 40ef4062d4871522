"""Chapter 5: how much of all pushes goes to the hardest negative, against temperature."""

import numpy as np
from lesson import chapter_values

from figures import _style


def data():
    """Temperatures and the hardest negative's share for chapter 1's row and for the row of 64 candidates."""
    chapter = chapter_values("ch05")
    sweep = chapter["sweep"]
    return {"tau": chapter["sweep_taus"], "three": sweep["3"][:, 2], "many": sweep["64"][:, 2]}


def draw():
    shown = data()
    figure, axis = _style.panels(width=6.4, height=3.9)
    axis.plot(shown["tau"], shown["three"], "-", color=_style.BLUE, label="2 negatives (cosines 0.54, 0.19)")
    axis.plot(shown["tau"], shown["many"], "--", color=_style.VERMILION, label="63 negatives (random cosines)")
    for level, name in ((1 / 2, "1/2"), (1 / 63, "1/63")):
        axis.axhline(level, color=_style.PALE, linewidth=1, zorder=0)
        axis.text(0.0098, level + 0.015, f"equal share {name}", fontsize=8)
    for tau in (0.05, 0.2, 1.0):
        for key, colour, marker in (("three", _style.BLUE, "o"), ("many", _style.VERMILION, "s")):
            at = float(np.interp(np.log(tau), np.log(shown["tau"]), shown[key]))
            axis.plot(tau, at, marker, color=colour)
            axis.annotate(f"{at:.2f}", (tau, at), (6, 5), textcoords="offset points", fontsize=9)
    axis.set_xscale("log")
    axis.set_xticks([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2], ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2"])
    axis.minorticks_off()
    axis.set(xlabel="temperature (units of cosine)", ylabel="share of the row's pushes", ylim=(0, 1.08))
    axis.legend(loc="lower left", bbox_to_anchor=(0.0, 0.17), fontsize=9)
    axis.set_title("A small temperature pushes on the hardest negative alone")
    return figure
