"""Chapter 2's twins: one vector, two dropout masks, two views."""

import numpy as np

from figures import _style

from .from_chapter import from_chapter
from .window import Window

HISTORY = 200  # resamples to leave on the right-hand plot


class Twins(Window):
    """Both masks as pictures, the first units of both views, and the cosine of each resample against p."""

    def __init__(self):
        super().__init__("See the twins: one vector, two dropout masks, two views", columns=2, rows=2)
        self.twins, self.equal_units = from_chapter("ch02", "twins", "equal_units")
        self.seed, self.seen = 0, []
        self.slider("dropout rate p", np.arange(51) / 100, 0.1)
        self.choice("units", ("64", "768"), "768")
        self.buttons({"resample": self.resample})
        self.numbers("cosine of the twins", "1 - p", "kept in view A", "kept in view B", "kept in both")
        self.ready()

    def resample(self):
        """A new vector and two new masks."""
        self.seed += 1

    def update(self):
        rate, width = self.settings["dropout rate p"], int(self.settings["units"])
        keep, views, cosine = self.twins(rate, self.seed, width)
        self.seen = [*self.seen, (width, rate, cosine)][-HISTORY:]
        both = keep.all(axis=0)
        counts = {"kept in view A": keep[0], "kept in view B": keep[1], "kept in both": both}
        self.write({name: f"{kept.sum()} of {width}" for name, kept in counts.items()})
        self.write({"cosine of the twins": f"{cosine:.3f}", "1 - p": f"{1 - rate:.3f}"})
        for axes, name, mask in zip(self.panels[0], "AB", keep, strict=True):
            axes.clear()
            axes.imshow(mask.reshape(-1, 32 if width == 768 else 8), cmap="gray", vmin=-0.4, vmax=1.1, aspect="auto")
            axes.set(xticks=[], yticks=[])
            axes.set_title(f"mask of view {name} (dark: dropped)", weight="normal", fontsize=10)
        self._draw_units(self.panels[1, 0], views[:, :24], 3 / (1 - rate))
        self._draw_cosines(self.panels[1, 1], rate, cosine, width)

    def _draw_units(self, axes, views, reach):
        axes.clear()
        for k, (name, colour) in enumerate((("A", _style.BLUE), ("B", _style.VERMILION))):
            axes.bar(np.arange(24) + 0.4 * k, views[k], width=0.4, color=colour, label=f"view {name}")
        axes.axhline(0, color=_style.INK, linewidth=0.6)
        axes.set(xlabel="unit (the first 24)", ylabel="value in the view", ylim=(-reach, 1.3 * reach))
        axes.legend(loc="upper right", ncols=2, fontsize=8)

    def _draw_cosines(self, axes, rate, cosine, width):
        axes.clear()
        rates = np.linspace(0, 0.5, 26)
        law = [self.equal_units(width, r) for r in rates]
        axes.plot(rates, law, color=_style.INK, linewidth=1, label="mean for equal units")
        seen = [(p, c) for units, p, c in self.seen if units == width]
        axes.plot(*np.transpose(seen), "o", color=_style.SKY, markersize=4, alpha=0.6, label="resamples so far")
        axes.plot(rate, cosine, "o", color=_style.VERMILION, markersize=9, label="now")
        axes.set(xlabel="dropout rate p", ylabel="cosine of the twins", xlim=(-0.02, 0.52), ylim=(0.25, 1.05))
        axes.legend(loc="lower left", fontsize=8)
