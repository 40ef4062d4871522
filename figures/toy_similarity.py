"""The 3 x 3 toy of chapter 7: the same cosines are read as a guess at temperature 1 and as an answer at 0.05."""

import numpy as np
from lesson import chapter_values

from figures import _style


def data():
    """Cosines and both softmax matrices."""
    chapter = chapter_values("ch07")
    return {"cosine": chapter["s"], "warm": chapter["p_warm"], "cold": chapter["p"]}


def draw():
    shown = data()
    figure, axes = _style.panels(3, width=3.6, height=3.7)
    titles = ("cosine of view A with view B", "probabilities at temperature 1", "probabilities at temperature 0.05")
    names = ("sentence 1", "sentence 2", "sentence 3")
    for axis, key, title in zip(axes, shown, titles, strict=True):
        low, high = (-0.3, 1) if key == "cosine" else (0, 1)
        rows = names if axis is axes[0] else ("", "", "")
        image = _style.heat_map(axis, shown[key], rows, ("1", "2", "3"), low, high)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("candidate (view B)")
        bar = figure.colorbar(image, ax=axis, shrink=0.75, ticks=np.linspace(0, 1, 3))
        bar.set_label("cosine" if key == "cosine" else "probability")
    axes[0].set_ylabel("query (view A)")
    figure.suptitle("Three right answers are near a guess at temperature 1, near certain at 0.05", fontweight="bold")
    figure.get_layout_engine().set(h_pad=0.06)
    return figure
