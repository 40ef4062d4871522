"""Rows of rare tokens in a tiny softmax language model (chapter 6)."""

import numpy as np
from lesson import chapter_values

from figures._style import BLUE, INK, VERMILION, panels


def data():
    """Per step: pair cosine of rare rows, of hidden states, cosine of their means; two frequency laws."""
    values = chapter_values("ch06")
    rare = values["rare_tokens"]
    return {"step": 40 * np.arange(len(rare)), "rare": rare, "equal": values["equal_tokens"]}


def draw():
    """Mean pair cosine of the rarer half against step, and the cosine of the two means."""
    d = data()
    figure, (left, right) = panels(2)
    for axes, column in ((left, 0), (right, 2)):
        axes.plot(d["step"], d["rare"][:, column], "o-", color=VERMILION, label="frequency 1 / rank")
        axes.plot(d["step"], d["equal"][:, column], "s--", color=BLUE, label="all tokens equally often")
        axes.axhline(0, color=INK, lw=0.6)
        axes.set(xlabel="gradient steps", ylim=(-1.05, 1.05))
    left.set(ylabel="mean cosine of two rows", title="rows of the rarer half")
    right.set(ylabel="cosine with the mean hidden state", title="their mean")
    left.legend(loc="lower right")
    figure.suptitle("Rare tokens gather in a cone that points away from the mean hidden state", fontweight="bold")
    return figure
