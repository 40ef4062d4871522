"""Chapter 15: what a critic learns from uniform, popularity and corrected popularity negatives."""

import numpy as np
from lesson import chapter_values

from figures import _style


def data():
    """The fitted score of every item for the second user, under three kinds of negatives; item popularity."""
    chapter = chapter_values("ch15")
    return {
        "scores": np.array([fit[1] for fit in chapter["fits"].values()]),
        "kinds": np.array(list(chapter["fits"])),
        "popularity": chapter["popularity"],
        "chance": chapter["p_of_user"][1],
    }


def draw():
    shown = data()
    figure, axis = _style.panels(width=6.4, height=3.6)
    items = np.arange(len(shown["popularity"]))
    names = ("uniform", "by popularity", "by popularity, log q subtracted")
    for k, (name, scores) in enumerate(zip(names, shown["scores"], strict=True)):
        axis.bar(items + 0.26 * (k - 1), scores, 0.24, color=_style.COLOURS[k], label=name, edgecolor=_style.INK,
                 linewidth=0.6, hatch=("", "//", "..")[k])
    axis.axhline(0, color=_style.INK, linewidth=0.8)
    axis.set_xticks(items, [f"item {i + 1}\nq = {q:.2f}\np = {p:.2f}" for i, (q, p) in
                            enumerate(zip(shown["popularity"], shown["chance"], strict=True))])
    axis.tick_params(axis="x", length=0)
    axis.set(xlabel="popularity q of the item, chance p of it for user 2", ylim=(-1.15, 1.9),
             ylabel="fitted score of user 2 (nats, mean 0)")
    axis.legend(title="negatives drawn", fontsize=8.5, title_fontsize=8.5, loc="upper right", ncols=3)
    axis.set_title("Popularity negatives favour the tail; log q puts popularity back")
    return figure
