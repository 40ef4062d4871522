"""Chapter 6's narrow cone and its repairs: a pair with an offset, and four points on the circle."""

import numpy as np

from figures import _style

from .from_chapter import from_chapter
from .window import Window, digits

SPREAD = 0.3
UNIT, PLAIN = "to length 1", "as they are"


class Cone(Window):
    """Two vectors (offset, +-0.3); four points on the circle under a repair, their spectrum and their cosines."""

    def __init__(self):
        super().__init__("The narrow cone, and what undoes it", columns=2, rows=2, size=(10.6, 6.3))
        self.offset_toy, self.on_circle, self.presets, self.repaired, self.summary = from_chapter(
            "ch06", "offset_toy", "on_circle", "PRESETS", "repaired", "summary"
        )
        self.slider("offset of the pair", np.arange(61) / 20, 1.0)
        self.choice("the pair", ("not centred", "centred"), "not centred")
        self.numbers("cosine of the pair")
        self.slider("degrees between the four points", np.arange(2, 91), 10, form="{:d}")
        self.choice("repair", self.presets, self.presets[0])
        self.choice("rows", (UNIT, PLAIN), UNIT)
        self.numbers("Sum of W W^T", "lambda1", "lambda2", "lambda1 / lambda2", "uniformity", "effective rank",
                     "mean cosine")
        self.ready()

    def update(self):
        offset, centring = self.settings["offset of the pair"], self.settings["the pair"] == "centred"
        cosine = self.offset_toy(offset, SPREAD, centring)
        self.write({"cosine of the pair": digits(cosine)})
        self._draw_pair(self.panels[0, 0], offset, centring)

        apart = self.settings["degrees between the four points"]
        points = self.repaired(self.on_circle(*(apart * np.arange(4))), self.settings["repair"],
                               self.settings["rows"] == UNIT)
        total, first, second, ratio, uniformity, _, rank, mean_cosine = self.summary(points)
        self.write({
            "Sum of W W^T": digits(round(total, 12)), "lambda1": digits(first), "lambda2": digits(second),
            "lambda1 / lambda2": digits(ratio), "uniformity": digits(uniformity), "effective rank": digits(rank),
            "mean cosine": digits(mean_cosine),
        })
        self._draw_points(self.panels[0, 1], points)
        self._draw_spectrum(self.panels[1, 0], np.sqrt(np.maximum([first, second], 0)))
        self._draw_cosines(self.panels[1, 1], points @ points.T)

    def _draw_pair(self, axes, offset, centring):
        pair = np.array([[offset, SPREAD], [offset, -SPREAD]])
        if centring:
            pair -= pair.mean(axis=0)
        axes.clear()
        for (x, y), colour in zip(pair, (_style.BLUE, _style.VERMILION), strict=True):
            axes.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 2})
        axes.plot(0, 0, "+", color=_style.INK)
        axes.set(xlim=(-0.5, 3.2), ylim=(-1.2, 1.2), aspect="equal", xlabel="offset direction")
        axes.set_title(f"pair (offset, +-{SPREAD})", weight="normal", fontsize=10)

    def _draw_points(self, axes, points):
        turn = np.linspace(0, 2 * np.pi, 200)
        axes.clear()
        axes.plot(np.cos(turn), np.sin(turn), color=_style.PALE, linewidth=1)
        for k, (x, y) in enumerate(points):
            axes.plot([0, x], [0, y], color=_style.PALE, linewidth=1)
            axes.plot(x, y, _style.MARKERS[k], color=_style.COLOURS[k], markersize=9, markeredgecolor=_style.INK)
        axes.set(xlim=(-1.9, 1.9), ylim=(-1.9, 1.9), aspect="equal")
        axes.set_title("four points", weight="normal", fontsize=10)

    def _draw_spectrum(self, axes, singular):
        axes.clear()
        axes.bar([1, 2], singular, width=0.6, color=_style.BLUE)
        axes.set(xlim=(0.4, 2.6), ylim=(0, 2.15), xticks=[1, 2], xlabel="direction k", box_aspect=1)
        axes.set_title("singular values", weight="normal", fontsize=10)

    def _draw_cosines(self, axes, gram):
        axes.clear()
        _style.heat_map(axes, np.round(gram, 2) + 0.0, range(1, 5), range(1, 5), -1, 1, form="{:+.2f}")
        name = "W W^T: their cosines" if self.settings["rows"] == UNIT else "W W^T"
        axes.set_title(name, weight="normal", fontsize=10)
