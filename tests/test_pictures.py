"""How pictures are written."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imread

from nano_simcse.pictures import BLUE, save_picture


def drawn():
    figure = Figure(figsize=(2, 1), facecolor=BLUE)
    figure.text(0.5, 0.5, "cosine")
    return figure


def test_a_picture_has_its_size_and_colours_and_the_same_bytes_every_time(tmp_path):
    for name in ("a.png", "b.png"):
        save_picture(drawn(), tmp_path / "new" / name)
    written = (tmp_path / "new" / "a.png").read_bytes()
    assert written == (tmp_path / "new" / "b.png").read_bytes() and b"Software" not in written
    pixels = imread(tmp_path / "new" / "a.png")
    assert pixels.shape == (120, 240, 4)
    np.testing.assert_allclose(pixels[0, 0], [0, 0x72 / 255, 0xB2 / 255, 1], atol=1e-6)
