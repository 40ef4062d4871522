"""What all pictures of the package share: their colours, and how one is written."""

from matplotlib.backends.backend_agg import FigureCanvasAgg

from .files import atomic_write

# Okabe and Ito: distinct without colour vision
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#7F7F7F"
SKY, AMBER, PINK, BLACK = "#56B4E9", "#E69F00", "#CC79A7", "#000000"
PIXELS = 120  # an inch


def save_picture(figure, path):
    """Write a matplotlib Figure to `path`, a PNG, whole or not at all; equal figures give equal bytes."""
    FigureCanvasAgg(figure)
    with atomic_write(path) as temporary:
        # without the version of matplotlib, which is no part of the picture
        figure.savefig(temporary, dpi=PIXELS, format="png", metadata={"Software": None})
