"""Chapter 5: the pull on the positive against temperature, with its peak, for rows of several sizes."""

import numpy as np
from lesson import chapter_values

from figures import _style

SIZES = (2, 3, 16, 64, 512)
GAP = 0.18


def data():
    """Temperatures, pull of rows with N - 1 negatives at gap 0.18, and each peak (tau*, pull)."""
    chapter = chapter_values("ch05")
    taus = np.geomspace(0.01, 1, 160)
    rows = [np.array([0.72, *[0.72 - GAP] * (n - 1)]) for n in SIZES]
    pull = np.array([[chapter["scene"](row, tau)["pull"] for tau in taus] for row in rows])
    star = np.array([chapter["tau_star"](GAP, n - 1) for n in SIZES])
    peak = np.array([chapter["scene"](row, tau)["pull"] for row, tau in zip(rows, star, strict=True)])
    return {"tau": taus, "pull": pull, "star": star, "peak": peak}


def draw():
    shown = data()
    figure, axis = _style.panels(width=6.6, height=4.2)
    for k, n in enumerate(SIZES):
        colour = _style.COLOURS[k]
        axis.plot(shown["tau"], shown["pull"][k], linestyle=_style.DASHES[k], color=colour, label=f"N = {n}")
        axis.plot(shown["star"][k], shown["peak"][k], _style.MARKERS[k], color=colour, markersize=8)
        beside = n == 64  # under the curve, clear of the line at 0.05
        axis.annotate(f"{shown['star'][k]:.3f}", (shown["star"][k], shown["peak"][k]),
                      (-3, -18) if beside else (0, -15 if n == 2 else 7), textcoords="offset points",
                      ha="left" if beside else "center", fontsize=9)
    axis.axvline(0.05, color=_style.PALE, linewidth=1, zorder=0)
    axis.text(0.052, 24.5, "0.05, the paper's", fontsize=9, color=_style.INK)
    axis.set_xscale("log")
    axis.set_xticks([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"])
    axis.minorticks_off()
    axis.set(xlabel="temperature (units of cosine)", ylabel="pull on the positive, (1 - p) / temperature")
    axis.set_ylim(-0.7, 26)
    axis.legend(title="all negatives 0.18 below")
    axis.set_title("More equal negatives: the pull peaks at a lower temperature")
    return figure
