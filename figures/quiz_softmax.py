"""Chapter 1: one quiz question with shuffled keys; the temperature changes the confidence, not the order."""

import numpy as np
from lesson import chapter_values

from figures import _style

TEMPERATURES = (1.0, 0.2, 0.05)


def data():
    """Order of the keys, place of the answer, cosines, and the probabilities at three temperatures."""
    quiz = chapter_values("ch01")["quiz"]
    order, cosines, _, answer = quiz()
    return {"order": order, "answer": np.array(answer), "cosine": cosines,
            "p": np.stack([quiz(tau=tau)[2] for tau in TEMPERATURES])}


def draw():
    shown = data()
    figure, axes = _style.panels(4, width=2.9, height=3.4)
    names = [f"k{k}" for k in shown["order"]]
    places, answer = np.arange(len(names)), int(shown["answer"])
    values = [shown["cosine"], *shown["p"]]
    titles = ["cosine with query 0", *(f"softmax, temperature {tau:g}" for tau in TEMPERATURES)]
    for axis, heights, title in zip(axes, values, titles, strict=True):
        bars = axis.bar(places, heights, color=_style.SKY, edgecolor=_style.INK, linewidth=0.6)
        bars[answer].set(facecolor=_style.VERMILION, hatch="//")
        axis.set_xticks(places, names)
        axis.set(title=title, xlabel="key, shuffled")
        axis.title.set_fontsize(10)
        if axis is axes[0]:
            axis.set(ylim=(-1, 1), ylabel="cosine")
            axis.axhline(0, color=_style.INK, linewidth=0.6)
        else:
            axis.set(ylim=(0, 1))
            axis.axhline(1 / len(names), color=_style.INK, linestyle=":", linewidth=1)
            axis.text(4.5, 0.27, "dotted: a guess, 1/8", ha="center", fontsize=8)
            axis.text(answer, heights[answer] + 0.02, f"{heights[answer]:.2f}", ha="center", fontsize=9)
    axes[1].set_ylabel("probability")
    title = "The right key (hatched) is first at every temperature; only a small one says so"
    figure.suptitle(title, fontweight="bold")
    return figure
