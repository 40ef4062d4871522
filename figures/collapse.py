"""Chapter 1: attraction alone; its loss falls like a healthy one, and the encoder shrinks to nothing."""

import numpy as np
from lesson import chapter_values

from figures import _style


def data():
    """Loss and remaining scale of both directions over 100 steps; the loss of the other settings over 30."""
    chapter = chapter_values("ch01")
    _, limit = chapter["collapse"](chapter["S"], 1 / chapter["S"].max())
    return {"loss": chapter["attraction_loss"], "scales": chapter["scales"], "singular": chapter["loss_singular"][:31],
            "limit": limit[:31], "beyond": chapter["loss_beyond"][:31]}


def draw():
    shown = data()
    figure, (left, right) = _style.panels(2, width=4.8, height=3.7)
    steps = np.arange(len(shown["loss"]))
    left.semilogy(steps, shown["loss"], color=_style.BLUE, label="loss")
    for k, (name, dash) in enumerate((("scale of direction 1", "--"), ("scale of direction 2", "-."))):
        left.semilogy(steps, shown["scales"][:, k], dash, color=(_style.VERMILION, _style.GREEN)[k], label=name)
    left.set(xlabel="step", ylabel="loss; scale as a share of its start", title="step size 0.5, S = diag(0.5, 0.2)")
    left.legend(loc="lower left")

    curves = (("loss", "step size 0.5: dies", "-", _style.BLUE),
              ("limit", "2 = 1 / max S: flips for ever", ":", _style.PURPLE),
              ("beyond", "2.1: grows", "--", _style.VERMILION),
              ("singular", "0.5, S = diag(0.5, 0): one direction lives", "-.", _style.ORANGE))
    for key, name, dash, colour in curves:
        right.semilogy(np.arange(31), shown[key][:31], linestyle=dash, color=colour, label=name)
    right.set(xlabel="step", ylabel="loss", ylim=(1e-20, 1e15), title="other step sizes and another S")
    right.legend(loc="upper left", fontsize=8)
    figure.suptitle("With attraction alone the loss looks healthy while the encoder dies", fontweight="bold")
    return figure
