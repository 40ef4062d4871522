"""Reported recall of the contrastive head for three batch sizes and seeds, with the error of one proportion (ch 14)."""

import numpy as np
from lesson import chapter_values

from figures._style import BLUE, INK, MARKERS, PALE, panels

N = 66


def data():
    """hits (3 batch sizes, 3 seeds), mean recall (3,) and its error for one set of 66 queries (3,), start (hits)."""
    hits = chapter_values("ch14")["hits"]
    mean = hits.sum(axis=1) / (3 * N)
    return {"hits": hits, "mean": mean, "error": np.sqrt(mean * (1 - mean) / N), "start": np.array(10)}


def draw():
    """Every seed as a dot, the mean with plus and minus one error, the start as a band."""
    d = data()
    figure, axes = panels(width=5.4, height=3.6)
    start = 100 * d["start"] / N
    axes.axhline(start, color=INK, lw=1.2, ls="--")
    axes.text(2.62, start - 0.35, "start: averaged word vectors", ha="right", va="top", fontsize=8.5)
    axes.axhline(100 / N, color=PALE, lw=1.2)
    axes.text(2.62, 100 / N + 0.3, "chance", ha="right", va="bottom", fontsize=8.5)
    for seed in range(3):
        axes.plot(np.arange(3) - 0.1 + 0.1 * seed, 100 * d["hits"][:, seed] / N, MARKERS[seed], color=PALE,
                  mec=INK, mew=0.8, label=f"seed {seed}")
    axes.errorbar(np.arange(3) + 0.25, 100 * d["mean"], 100 * d["error"], fmt="D", color=BLUE, capsize=4,
                  label="mean, one binomial error")
    axes.set(xlim=(-0.5, 2.65), ylim=(0, 31), xticks=range(3), xlabel="batch size")
    axes.set_ylabel("recall@1 of 66 sections, percent")
    axes.set_xticklabels(["4", "16", "64"])
    axes.set_title("Three batch sizes differ by less than one error")
    axes.legend(loc="upper left", ncols=2, fontsize=8.5)
    return figure
