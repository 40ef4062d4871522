"""One look for all figures: colours that stay apart for colour-blind readers and in grey print."""

import numpy as np
from matplotlib import pyplot as plt

#: Okabe and Ito's palette, dark to light in print; give each line its own marker or dash as well.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
INK, PALE = "#222222", "#BBBBBB"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))

_LOOK = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "figure.facecolor": "white",
}


def panels(columns=1, rows=1, width=4.6, height=3.4, **options):
    """A figure and its axes in the common look; options go to plt.subplots."""
    plt.rcParams.update(_LOOK)
    size = (width * columns, height * rows)
    return plt.subplots(rows, columns, figsize=size, layout="constrained", **options)


def heat_map(axes, values, rows, columns, low, high, form="{:.2f}"):
    """A labelled matrix with its numbers written in; returns the image for a colour bar."""
    values = np.asarray(values)
    image = axes.imshow(values, cmap="cividis", vmin=low, vmax=high)
    axes.set_xticks(range(values.shape[1]), columns)
    axes.set_yticks(range(values.shape[0]), rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for (i, j), x in np.ndenumerate(values):
        dark = (x - low) / (high - low) < 0.55
        axes.text(j, i, form.format(x), ha="center", va="center", color="white" if dark else INK)
    return image
