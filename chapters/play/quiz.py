"""Chapter 1's quiz: one query, N shuffled keys, one softmax."""

import numpy as np

from figures import _style

from .from_chapter import from_chapter
from .window import TEMPERATURES, Window, digits


class Quiz(Window):
    """Cosines of one query with the shuffled keys, and the share the softmax gives to each."""

    def __init__(self):
        super().__init__("The quiz: which key belongs to this query?", rows=2)
        (self.quiz,) = from_chapter("ch01", "quiz")
        self.row, self.seed = 0, 1
        self.slider("candidates N", np.arange(2, 25), 8, form="{:d}")
        self.slider("temperature tau", TEMPERATURES, 0.05, form="{:g}")
        self.slider("noise of a partner", np.arange(0, 31) / 10, 1.0, form="{:.1f}")
        self.buttons({"next question": self.next_question, "new batch": self.new_batch})
        self.numbers("question", "right key", "top of the softmax", "p of the right key", "loss of this question",
                     "loss of all N questions", "a guess, ln N")
        self.ready()

    def next_question(self):
        """The same batch, another row."""
        self.row += 1

    def new_batch(self):
        """Other queries and keys."""
        self.seed += 1

    def update(self):
        n, tau, noise = (self.settings[k] for k in ("candidates N", "temperature tau", "noise of a partner"))
        self.row %= n
        batch = [self.quiz(n, tau, row, noise, seed=self.seed) for row in range(n)]
        losses = [-np.log(p[answer]) for _, _, p, answer in batch]
        order, cosines, p, answer = batch[self.row]
        self.write({
            "question": f"query {self.row}",
            "right key": f"k{order[answer]}",
            "top of the softmax": f"k{order[p.argmax()]}",
            "p of the right key": digits(p[answer]),
            "loss of this question": digits(losses[self.row]),
            "loss of all N questions": digits(np.mean(losses)),
            "a guess, ln N": digits(np.log(n)),
        })
        upper, lower = self.panels
        for axes, heights in ((upper, cosines), (lower, p)):
            axes.clear()
            bars = axes.bar(np.arange(n), heights, color=_style.SKY, edgecolor=_style.INK, linewidth=0.6)
            bars[answer].set(facecolor=_style.VERMILION, hatch="//")
            axes.set_xticks(np.arange(n), [f"k{k}" for k in order], fontsize=9 if n < 17 else 7)
        upper.axhline(0, color=_style.INK, linewidth=0.6)
        upper.set(ylim=(-1.05, 1.05), ylabel=f"cosine with query {self.row}")
        lower.axhline(1 / n, color=_style.INK, linestyle=":", linewidth=1)
        lower.set(ylim=(0, 1.05), ylabel="softmax of cosine / tau", xlabel="keys, shuffled (hatched: the right one)")
