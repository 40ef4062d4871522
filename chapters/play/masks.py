"""The package's keep masks of one sentence, view A beside view B (chapter 2, "Two masks as pictures")."""

import numpy as np

from nano_simcse.masks import MODES, row_labels
from nano_simcse.masks import Masks as KeepMasks

from .from_chapter import from_chapter
from .window import Window

SEED, SITE = 4, 0  # the run of chapter 2, and the dropout site on the embeddings


class Masks(Window):
    """1 kept, 0 dropped; a row per token, a column per unit. Masks are a function of step and sentence number."""

    def __init__(self):
        super().__init__("Two keep masks of one sentence: 1 kept, 0 dropped", columns=2, size=(11.4, 5.2))
        self.words, self.units = from_chapter("ch02", "words", "sites")
        self.step = self.sentence = 0
        self.slider("dropout rate p", np.arange(51) / 100, 0.1)
        self.choice("mode", MODES, "independent", in_a_row=3)
        self.buttons({"next step": self.next_step, "next sentence": self.next_sentence})
        self.numbers("training step", "sentence of the batch", "kept in view A", "kept in view B", "cells that differ",
                     "a kept unit is multiplied by")
        self.pictures = [self._empty_picture(axes, name) for axes, name in zip(self.panels, "AB", strict=True)]
        self.ready()

    def next_step(self):
        """The masks of the next training step."""
        self.step += 1

    def next_sentence(self):
        """The same words at the next place of the batch: masks go by the place, not by the words."""
        self.sentence += 1

    def update(self):
        masks = KeepMasks(SEED, self.step, self.settings["dropout rate p"], self.settings["mode"])
        kept = [self._keep(masks, view) for view in (0, 1)]
        self.write({
            "training step": f"{self.step}",
            "sentence of the batch": f"{self.sentence}",
            "kept in view A": f"{kept[0].sum()} of {kept[0].size}",
            "kept in view B": f"{kept[1].sum()} of {kept[1].size}",
            "cells that differ": f"{(kept[0] != kept[1]).sum()}",
            "a kept unit is multiplied by": f"{masks.scale:.3f}",
        })
        for (picture, cells), mask in zip(self.pictures, kept, strict=True):
            picture.set_data(mask)
            for cell, one in zip(cells, mask.ravel(), strict=True):
                cell.set(text=int(one), color="#777777" if one else "white")

    def _empty_picture(self, axes, name):
        """The image and the texts of its cells, row by row, for update() to fill."""
        shape = (len(self.words), self.units)
        picture = axes.imshow(np.ones(shape), cmap="gray", vmin=-0.6, vmax=1, aspect="auto")
        axes.set_yticks(range(shape[0]), self.words if name == "A" else [])
        axes.set_xticks(range(0, self.units, 5))
        axes.tick_params(length=0)
        axes.set(xlabel=f"unit, view {name}")
        return picture, [axes.text(j, i, "", ha="center", va="center", fontsize=8) for i, j in np.ndindex(shape)]

    def _keep(self, masks, view):
        """Keep mask (tokens, units) of one view; nothing dropped is all ones."""
        labels = row_labels([self.sentence], [view]) + np.arange(len(self.words), dtype=np.uint64)
        keep = masks.keep(SITE, labels, self.units)
        return np.ones((len(labels), self.units), bool) if keep is None else keep
