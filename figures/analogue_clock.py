"""What the neighbours of a window share with it, and how well they forecast (chapter 17)."""

import numpy as np
from lesson import chapter_values

from figures._style import BLUE, INK, VERMILION, panels


def data():
    """shares (positives, 2): neighbours of the same month, of the same type; errors; baselines: last value, direct."""
    chapter = chapter_values("ch17")
    return {"shares": chapter["shares"], "errors": chapter["accuracy"],
            "baselines": np.array([chapter["last_value"], chapter["direct"]])}


def draw():
    d, names = data(), ["raw window", "next day", "jitter, scaling,\nmasking", "and other\ntextures"]
    figure, (left, right) = panels(2, width=4.9, height=3.7)
    place = np.arange(len(names))
    for k, (name, colour, hatch) in enumerate((("same month", VERMILION, "//"), ("same day type", BLUE, ""))):
        left.bar(place + 0.4 * (k - 0.5), 100 * d["shares"][:, k], 0.38, color=colour, hatch=hatch, edgecolor="white",
                 label=name)
    left.set(xlabel="positives of the encoder", ylabel="neighbours, percent", ylim=(0, 100))
    left.legend()
    right.bar(place, d["errors"], 0.6, color=BLUE)
    for value, name, dash in zip(d["baselines"], ("last value", "direct, linear"), ("--", ":"), strict=True):
        right.axhline(value, color=INK, ls=dash, lw=1.2)
        right.text(3.45, value + 0.02, name, ha="right", va="bottom", fontsize=9)
    right.set(xlabel="positives of the encoder", ylabel="forecast error, standard deviations", ylim=(0, 1.5))
    for axes in (left, right):
        axes.set_xticks(place, names, fontsize=8)
    figure.suptitle("The next day as positive teaches a clock; shape-keeping views teach the shape",
                    fontsize=11, fontweight="bold")
    return figure
