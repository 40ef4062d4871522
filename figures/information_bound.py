"""Chapter 10: what N candidates certify of the information two Gaussian views share, with the ceiling log N."""

import numpy as np
from lesson import chapter_values

from figures import _style


def data():
    """Candidates, the bound and its standard error for D = 1 and D = 8, both truths, and log N."""
    chapter = chapter_values("ch10")
    long_run = chapter["long_run"]
    return {
        "candidates": np.array(chapter["sizes"]),
        "bound_d1": long_run[:, 0],
        "error_d1": long_run[:, 1],
        "bound_d8": long_run[:, 3],
        "error_d8": long_run[:, 4],
        "truth_d1": np.array(chapter["small_truth"]),
        "truth_d8": np.array(chapter["large_truth"]),
        "ceiling": np.log(chapter["sizes"]),
    }


def draw():
    shown = data()
    figure, axis = _style.panels(width=6.6, height=4.2)
    axis.plot(shown["candidates"], shown["ceiling"], "--", color=_style.INK, label="ceiling, log N")
    curves = (("8", _style.BLUE, "o", 2, "left"), ("1", _style.VERMILION, "s", 512, "right"))
    for name, colour, marker, x, side in curves:
        axis.axhline(shown[f"truth_d{name}"], color=colour, linewidth=1, linestyle=":")
        height = shown[f"truth_d{name}"] + 0.12
        axis.text(x, height, f"true information, D = {name}", color=colour, fontsize=9, ha=side)
        axis.plot(shown["candidates"], shown[f"bound_d{name}"], marker=marker, color=colour,
                  label=f"log N - loss, exact critic, D = {name}")
    axis.set_xscale("log", base=2)
    axis.set_xticks(shown["candidates"], [str(n) for n in shown["candidates"]])
    axis.minorticks_off()
    axis.set_ylim(0, 7.4)
    axis.set(xlabel="candidates N", ylabel="information (nats)")
    axis.legend(loc="center right", bbox_to_anchor=(1.0, 0.33))
    axis.set_title("Few candidates cannot certify much, however good the critic")
    return figure
