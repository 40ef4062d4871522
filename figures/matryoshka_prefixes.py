"""What is left of an embedding after it is cut (chapter 9)."""

import numpy as np
from lesson import chapter_values

from figures._style import BLUE, INK, VERMILION, panels


def data():
    """prefixes (5,); curves (seeds, 2, 5): score after cutting, trained on the full width or on every prefix."""
    values = chapter_values("ch09")
    return {"prefixes": np.array(values["PREFIXES"]), "curves": values["curves"]}


def draw():
    """Score against the number of columns kept; thin lines are single seeds."""
    d = data()
    figure, axes = panels(width=5.2)
    looks = (("s--", VERMILION, "loss on all 32 columns only"), ("o-", BLUE, "loss on every prefix (Matryoshka)"))
    for j, (line, colour, label) in enumerate(looks):
        for seed in d["curves"][:, j]:
            axes.plot(d["prefixes"], seed, line[1:], color=colour, lw=0.7, alpha=0.6)
        axes.plot(d["prefixes"], d["curves"][:, j].mean(axis=0), line, color=colour, label=label)
    axes.plot([], [], "-", color=INK, lw=0.7, label="thin: one seed each; thick: their mean")
    axes.set_xscale("log", base=2)
    axes.set_xticks(d["prefixes"], d["prefixes"])
    axes.set(xlabel="columns kept of 32", ylabel="score (Spearman correlation)", ylim=(0, 0.8))
    axes.legend(loc="lower right")
    axes.set_title("Trained for it, 8 columns beat 16 that were not")
    return figure
