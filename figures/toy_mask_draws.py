"""The 46,656 mask draws of chapter 7's toy: equal masks have low losses and pull nothing together."""

import numpy as np
from lesson import chapter_values

from figures import _style


def data():
    """Loss and length of the pull of every draw, and how many sentences have two equal masks."""
    chapter = chapter_values("ch07")
    return {"loss": chapter["loss_all"], "pull": chapter["pull_all"], "equal": chapter["equal_masks"]}


def draw():
    shown = data()
    figure, axis = _style.panels(width=6.4, height=4.2)
    names = ("no sentence", "one sentence", "two sentences", "all three")
    for k, name in enumerate(names):
        group = shown["equal"] == k
        chosen = np.flatnonzero(group)[:: max(1, group.sum() // 1500)]
        axis.scatter(
            shown["loss"][chosen], shown["pull"][chosen], s=9 if k < 3 else 22, marker=_style.MARKERS[k],
            color=(_style.SKY, _style.BLUE, _style.ORANGE, _style.VERMILION)[k], alpha=0.5 if k < 3 else 1,
            linewidths=0, label=name, zorder=k, rasterized=True,
        )
    axis.axvline(np.log(3), color=_style.INK, linestyle=":", linewidth=1)
    axis.annotate("a guess, ln 3", (np.log(3), 2.75), xytext=(4, 0), textcoords="offset points", fontsize=9)
    axis.set_xlabel("loss of the draw (nats)")
    axis.set_ylabel("length of the pull on the positives")
    axis.set_title("All masks equal: a loss below a guess, and no pull at all")
    axis.legend(title="two equal masks in", markerscale=1.6)
    axis.text(
        0.995, 0.075, "zero above a guess: a sentence whose two masks share no unit", transform=axis.transAxes,
        ha="right", fontsize=8.5, bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
    )
    figure.supxlabel(f"a sample of the {len(shown['loss']):,} draws: about 1,500 of each group, all where fewer",
                     fontsize=9, x=0.99, ha="right")
    return figure
