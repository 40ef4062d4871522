"""Chapter 4: the share of a row's repulsion on its own contradiction, by cosine, temperature and batch."""

import numpy as np
from lesson import chapter_values

from figures import _style

TEMPERATURES = (0.02, 0.05, 0.1, 0.2, 1.0)
CONTRADICTIONS = (0.70, 0.62, 0.50, 0.40)


def data():
    """Shares over cosines (batch of 2) per temperature, and over batch sizes (tau 0.05) per cosine."""
    chapter = chapter_values("ch04")
    hard_row, half = chapter["hard_row"], chapter["half"]
    cosines = np.linspace(-0.2, 0.75, 96)
    sizes = 2 ** np.arange(1, 11)
    return {
        "cosines": cosines,
        "by_cosine": np.array([[hard_row(c, t)[3] for c in cosines] for t in TEMPERATURES]),
        "half": half,
        "sizes": sizes,
        "by_size": np.array([[hard_row(c, n=n)[3] for n in sizes] for c in CONTRADICTIONS]),
        "worked": chapter["push"][1],
    }


def draw():
    shown = data()
    figure, (left, right) = _style.panels(2, width=4.6, height=3.7, sharey=True)
    for k, tau in enumerate(TEMPERATURES):
        left.plot(shown["cosines"], shown["by_cosine"][k], color=_style.COLOURS[k], linestyle=_style.DASHES[k],
                  label=f"{tau:g}")
    left.plot(0.62, shown["worked"], "o", color=_style.INK, markersize=7, zorder=3)
    left.text(0.62, 1.045, "worked row: 99.8%", ha="center", fontsize=9)
    left.axvline(0.30, color=_style.PALE, zorder=0)
    left.text(0.285, 0.66, "best random\nnegative", ha="right", fontsize=8.5)
    left.set_xlabel("cosine of the own contradiction")
    left.set_ylabel("its share of the row's repulsion")
    left.set_title("two triples in the batch", fontsize=10, fontweight="normal")
    left.legend(title="temperature", loc="lower right", ncols=2, fontsize=8.5, title_fontsize=8.5)
    for k, cosine in enumerate(CONTRADICTIONS):
        right.plot(shown["sizes"], shown["by_size"][k], color=_style.COLOURS[k], marker=_style.MARKERS[k],
                   label=f"{cosine:.2f}")
    right.set_xscale("log", base=2)
    right.set_xticks([2, 8, 32, 128, 512], ["2", "8", "32", "128", "512"])
    right.minorticks_off()
    right.set_xlabel("triples in the batch")
    right.set_title("temperature 0.05", fontsize=10, fontweight="normal")
    right.legend(title="its cosine", loc="lower left", fontsize=8.5, title_fontsize=8.5)
    left.set_ylim(-0.03, 1.12)
    left.set_yticks(np.linspace(0, 1, 6))
    figure.suptitle("A hard negative takes the repulsion at small tau, less of it in a large batch", fontweight="bold")
    return figure
