"""The cone, centred, whitened and contrastively trained: points and spectra (chapter 6)."""

import numpy as np
from lesson import chapter_values

from figures._style import BLUE, GREEN, INK, MARKERS, PALE, VERMILION, panels


def data():
    """picture of chapter 6: groups (4, 3, n, 2), others (4, n, 2), spectra (4, 16), scores (4,)."""
    return chapter_values("ch06")["picture"]


def draw():
    """Upper row: unit vectors seen in one plane; lower row: singular values over the largest."""
    d, presets = data(), chapter_values("ch06")["PRESETS"]
    figure, axes = panels(4, 2, width=2.7, height=2.75)
    circle = np.linspace(0, 2 * np.pi, 200)
    for j, name in enumerate(presets):
        top, low = axes[0, j], axes[1, j]
        top.plot(np.cos(circle), np.sin(circle), color=PALE, lw=1)
        top.plot(*d["others"][j].T, ".", ms=3, color=PALE)
        for group, colour, marker in zip(d["groups"][j], (BLUE, VERMILION, GREEN), MARKERS, strict=False):
            top.plot(*group.T, marker, ms=4, color=colour, mec="white", mew=0.4)
        top.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), xticks=[-1, 0, 1], yticks=[-1, 0, 1], aspect="equal")
        top.set_title(f"{name}\nscore {d['scores'][j]:.2f}", loc="center", fontsize=10, color=INK)
        low.bar(np.arange(1, 17), d["spectra"][j], color=BLUE, width=0.8)
        low.set(ylim=(0, 1.05), xticks=[1, 8, 16], xlabel="direction k")
    axes[0, 0].set_ylabel("cosine with plane axis 2")
    axes[0, 0].set_xlabel("cosine with plane axis 1")
    axes[1, 0].set_ylabel("singular value over the largest")
    figure.suptitle(
        "Whitening has the flattest spectrum, contrastive training the best score",
        fontsize=11, fontweight="bold",
    )
    figure.supxlabel(
        "Upper row: unit vectors in the plane of three meanings (colour and marker, 30 wordings each); grey: other "
        "sentences.\nScore: rank correlation of cosine and similarity of meaning.",
        fontsize=8.5,
    )
    return figure
