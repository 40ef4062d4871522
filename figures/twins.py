"""Chapter 2: two masks of one sentence as pictures, and how similar the twins are at each dropout rate."""

import numpy as np
from lesson import chapter_values

from figures import _style

SIZES = (4, 16, 768)


def data():
    """Both keep masks (tokens x units) and, per width, exact and sampled mean cosines of twins."""
    chapter = chapter_values("ch02")
    rates = np.linspace(0, 0.6, 61)
    at = [list(chapter["sizes"]).index(d) for d in SIZES]
    return {
        "mask_A": chapter["mask_A"],
        "mask_B": chapter["mask_B"],
        "tokens": np.array(chapter["words"]),
        "rate": rates,
        "law": np.array([[chapter["equal_units"](d, rate) for rate in rates] for d in SIZES]),
        "sampled_rate": chapter["rates"],
        "sampled": chapter["sampled"][at, :, 0],
    }


def draw():
    shown = data()
    figure, (left, middle, right) = _style.panels(columns=3, width=3.7, height=3.9, width_ratios=(1, 1, 1.5))
    for axis, name in ((left, "A"), (middle, "B")):
        mask = shown[f"mask_{name}"]
        axis.imshow(mask, cmap="gray", vmin=-0.6, vmax=1, aspect="auto")
        for (i, j), kept in np.ndenumerate(mask):
            axis.text(j, i, int(kept), ha="center", va="center", fontsize=7.5, color="#888888" if kept else "white")
        axis.set_yticks(range(len(mask)), shown["tokens"] if name == "A" else [])
        axis.set_xticks(range(0, mask.shape[1], 5))
        axis.tick_params(length=0)
        axis.set(xlabel=f"unit, view {name}")
    for k, d in enumerate(SIZES):
        look = {"color": _style.COLOURS[k]}
        right.plot(shown["rate"], shown["law"][k], linestyle=_style.DASHES[k], label=f"{d} units", **look)
        right.plot(shown["sampled_rate"], shown["sampled"][k], _style.MARKERS[k], **look)
    right.plot(shown["rate"], 1 - shown["rate"], color=_style.INK, linewidth=0.8, label="1 - p")
    right.set(xlabel="dropout rate p", ylabel="mean cosine of twins", ylim=(0.25, 1.03))
    right.legend(title="lines exact, marks sampled", loc="lower left")
    title = "Two masks make two views of one sentence; their cosine is about 1 - p"
    figure.suptitle(title, x=0.01, ha="left", weight="bold")
    return figure
