"""Chapter 1: chance, the floor of one row, and the floor of a batch, against the number of candidates."""

import numpy as np
from lesson import chapter_values

from figures import _style


def data():
    """N, chance, row floors and batch floors at temperatures 1 and 0.05; what free rows reached for N = 4, 8, 16."""
    chapter = chapter_values("ch01")
    n = np.array([2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024])
    return {"n": n, "chance": np.log(n), "found": chapter["found"], "row": np.log1p((n - 1) * np.exp(-2)),
            "batch": chapter["batch_floor"](n, 1.0), "row_small": np.log1p((n - 1) * np.exp(-40)),
            "batch_small": chapter["batch_floor"](n, 0.05)}


def draw():
    shown = data()
    n = shown["n"]
    figure, (left, right) = _style.panels(2, width=4.8, height=3.8)
    left.fill_between(n, shown["batch"], shown["chance"], color=_style.SKY, alpha=0.35, linewidth=0)
    for axis, suffix in ((left, ""), (right, "_small")):
        axis.plot(n, shown["chance"], "-", color=_style.INK, label="chance, ln N")
        axis.plot(n, shown[f"batch{suffix}"], "--", color=_style.BLUE, label="floor of a batch (simplex)")
        axis.plot(n, shown[f"row{suffix}"], "-.", color=_style.VERMILION, label="floor of one row (antipodal)")
        axis.set_xscale("log", base=2)
        axis.set_xticks([2, 8, 32, 128, 512], ["2", "8", "32", "128", "512"])
        axis.set(xlabel="candidates N", ylabel="loss (nats)")
    left.plot([4, 8, 16], shown["found"], "o", color=_style.BLUE, label="reached by free rows")
    left.annotate("all that training can win", (256, 5.05), (20, 6.4), fontsize=9, ha="center",
                  arrowprops={"arrowstyle": "-", "color": _style.INK})
    left.set(title="temperature 1", ylim=(0, 7.2))
    right.set(title="temperature 0.05", yscale="log", ylim=(1e-20, 1e3))
    right.legend(loc="upper left", bbox_to_anchor=(0.02, 0.8), fontsize=9)
    left.legend(handles=left.get_lines()[-1:], loc="lower right", fontsize=9)
    figure.suptitle("At temperature 1 a batch never gets more than one nat below chance", fontweight="bold")
    return figure
