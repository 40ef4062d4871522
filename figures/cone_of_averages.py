"""Cosine of two averages of n words each, against n (chapter 13)."""

import numpy as np
from lesson import chapter_values

from figures._style import COLOURS, DASHES, INK, panels

WORD_COSINES = (0.02, 0.05, 0.2, 0.5)


def data():
    """n (40,), the curve of each word cosine (4, 40), and the pair built and measured in chapter 13 (n, cosine)."""
    n = np.arange(1, 41)
    c = np.array(WORD_COSINES)[:, None]
    halves = chapter_values("ch13")["halves"]
    unit = halves / np.linalg.norm(halves, axis=1, keepdims=True)
    return {"n": n, "cosine": n * c / (1 + (n - 1) * c), "measured": np.array([40, unit[0] @ unit[1]])}


def draw():
    """One curve per cosine between two words, named at its right end."""
    d = data()
    figure, axes = panels(width=5.4, height=3.6)
    for curve, c, colour, dash in zip(d["cosine"], WORD_COSINES, COLOURS, DASHES, strict=False):
        axes.plot(d["n"], curve, dash, color=colour)
        axes.annotate(f"{c}", (40, curve[-1]), xytext=(6, 0), textcoords="offset points", va="center", color=colour)
    axes.plot(*d["measured"], "o", color=INK, label="80 constructed words, 40 in each average")
    axes.set(xlim=(0, 45), ylim=(0, 1.05), xticks=[1, 10, 20, 30, 40], xlabel="words in each average, n",
             ylabel="cosine of two averages")
    axes.set_title("Averaging 40 words turns a wide cone into a narrow one")
    axes.text(40.5, 0.33, "cosine of\ntwo words", fontsize=8.5, va="top")
    axes.legend(loc="lower center", fontsize=9)
    return figure
