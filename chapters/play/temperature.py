"""Chapter 5's row at any temperature: softmax, loss, pull, and the scene with a wrong label."""

import numpy as np

from figures import _style

from .from_chapter import from_chapter
from .window import TEMPERATURES, Window, digits


class Temperature(Window):
    """Bars: cosines and probabilities of one row. Curve: the pull on the positive at every temperature."""

    def __init__(self):
        super().__init__("One row of the loss, from warm to cold", columns=2, width_ratios=(1.15, 1))
        self.scene, self.peak, self.presets = from_chapter("ch05", "scene", "peak", "PRESETS")
        self.slider("temperature tau", TEMPERATURES, 0.05, form="{:g}")
        self.choice("scene", tuple(self.presets), "chapter 1")
        self.numbers("loss", "p of the positive", "pull on the positive", "push on the hardest",
                     "hardest : easiest push", "its share of all pushes")
        self.ready()

    def update(self):
        cosines, tau = self.presets[self.settings["scene"]], self.settings["temperature tau"]
        row = self.scene(cosines, tau)
        self.write({
            "loss": digits(row["loss"]),
            "p of the positive": digits(row["p"][0]),
            "pull on the positive": digits(row["pull"]),
            "push on the hardest": digits(row["push"].max()),
            "hardest : easiest push": digits(row["ratio"]),
            "its share of all pushes": digits(row["share"]),
        })
        self._draw_bars(self.panels[0], cosines, row["p"])
        self._draw_pull(self.panels[1], cosines, tau, row["pull"])

    def _draw_bars(self, axes, cosines, p):
        places = np.arange(len(cosines))
        axes.clear()
        axes.bar(places - 0.2, cosines, 0.36, color=_style.PALE, label="cosine")
        axes.bar(places + 0.2, p, 0.36, color=_style.BLUE, label="probability")
        for place, share in zip(places, p, strict=True):
            axes.text(place + 0.2, share + 0.015, f"{share:.3f}", ha="center", fontsize=9)
        wrong = self.settings["scene"] == "false negative"
        names = ["positive", "paraphrase\nas negative" if wrong else "hard\nnegative", "easy\nnegative"]
        axes.set_xticks(places, names[: len(cosines)])
        axes.set(ylim=(0, 1.18), xlim=(-0.6, 2.6), ylabel="cosine, probability")
        axes.legend(loc="upper center", ncols=2, fontsize=9)

    def _draw_pull(self, axes, cosines, tau, pull):
        axes.clear()
        pulls = [self.scene(cosines, t)["pull"] for t in TEMPERATURES]
        axes.plot(TEMPERATURES, pulls, color=_style.VERMILION)
        axes.plot(tau, pull, "o", color=_style.INK, markersize=9)
        if cosines[0] > cosines[1:].max():  # with a negative ahead the pull grows without end as tau falls
            best, height = self.peak(cosines)
            axes.plot(best, height, "^", color=_style.VERMILION, markersize=8, label=f"peak at tau = {best:.4f}")
            axes.legend(loc="upper right", fontsize=9)
        axes.set_xscale("log")
        axes.set_xticks([0.01, 0.05, 0.2, 1], ["0.01", "0.05", "0.2", "1"])
        axes.minorticks_off()
        axes.set(xlabel="temperature tau", ylabel="pull on the positive, (1 - p) / tau")
        axes.set_ylim(0, 1.15 * max(pulls))
