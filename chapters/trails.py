"""A small world of sentence vectors, and an encoder whose path through (uniformity, alignment) can be watched.

A "sentence" is a vector of 86 units in four blocks:

    4 units     an offset that every sentence shares (1.5 each): the untrained cone
    18 units    its meaning: 6 latents, coded redundantly (18 mixtures of 6 numbers)
    24 units    nuisance: one independent number per unit (wording, say)
    40 units    junk: ONE number written over 40 units, so that no mask can hide it

A paraphrase has the same 6 latents and everything else drawn anew. The encoder is one matrix, 86 -> 16, trained with
InfoNCE on two copies of each vector under input dropout. Whoever wants two views of one sentence to agree in spite of
dropout must read what is written in many units (meaning, but also junk) rather than what stands in a single unit.
"""

import numpy as np

from nano_simcse.evaluation import spearman
from nano_simcse.geometry import alignment, uniformity
from nano_simcse.layers import dropout, linear, normalize
from nano_simcse.losses import info_nce
from nano_simcse.masks import Masks, row_labels
from nano_simcse.optim import Adam
from nano_simcse.parameters import Parameters

LATENTS, COPIES, OFFSET_UNITS, NUISANCE_UNITS, JUNK_UNITS = 6, 3, 4, 24, 40
BATCH, TEMPERATURE, LEARNING_RATE = 32, 0.05, 0.01

#: setting -> mask mode of the package; "paraphrase" pairs two different sentences of one meaning (supervision).
SETTINGS = {
    "no dropout": "off",
    "same mask": "shared",
    "independent masks": "independent",
    "paraphrase": "independent",
}


class World:
    """Sentences of one random world. nuisance, junk, offset: what stands in those blocks (0 removes it)."""

    def __init__(self, seed, nuisance=1.0, junk=1.0, offset=1.5):
        self.rng = np.random.default_rng(seed)
        self.nuisance, self.junk, self.offset = nuisance, junk, offset
        self.mixing = self._normal(LATENTS, LATENTS * COPIES) / np.sqrt(LATENTS)
        self.spread = self._normal(1, JUNK_UNITS)
        self.meanings = self._normal(3000, LATENTS)
        self.train = self.say(self.meanings)
        held_out = self._normal(400, LATENTS)
        self.left, self.right = self.say(held_out), self.say(held_out)
        # pairs of graded similarity: the gold score is the cosine of the two meanings
        share = self.rng.random((1500, 1))
        a = self._normal(1500, LATENTS)
        b = share * a + np.sqrt(1 - share**2) * self._normal(1500, LATENTS)
        self.gold = (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        self.first, self.second = self.say(a), self.say(b)

    def _normal(self, *shape):
        return self.rng.standard_normal(shape)

    def say(self, meanings):
        """Sentence vectors (n, 86) of the meanings (n, 6), with fresh nuisance and junk."""
        n = len(meanings)
        blocks = (
            np.full((n, OFFSET_UNITS), self.offset),
            meanings @ self.mixing,
            self.nuisance * self._normal(n, NUISANCE_UNITS),
            self.junk * self._normal(n, 1) @ self.spread,
        )
        return np.concatenate(blocks, axis=1)


class Trail:
    """One encoder in training. Knobs: setting (see SETTINGS), rate, seed, width, and those
    of World; run(steps), reset().

    points  (k, 2): uniformity and alignment of held-out sentences, one row every `every` steps
    losses  (k,): the training loss at those steps
    """

    def __init__(self, setting, rate=0.1, seed=0, width=16, every=10, **world):
        self.setting, self.rate, self.seed, self.width, self.every = setting, rate, seed, width, every
        self._world = world
        self.reset()

    def reset(self):
        """Back to the random world and matrix of this seed."""
        self.world = World(self.seed, **self._world)
        self.rng = np.random.default_rng([self.seed, 1])
        units = self.world.train.shape[1]
        self.parameters = Parameters({"weight": (units, self.width)}, dtype=np.float64)
        self.parameters["weight"][...] = self.rng.standard_normal((units, self.width)) / np.sqrt(units)
        self.adam = Adam(self.parameters)
        self.steps, self._points, self._losses = 0, [], []
        return self

    def encode(self, vectors):
        """Embeddings without dropout: evaluation."""
        return vectors @ self.parameters["weight"]

    def run(self, steps):
        """Train on for so many steps; returns self."""
        for _ in range(steps):
            self._step()
            self.steps += 1
        return self

    def measure(self):
        """(uniformity, alignment) now, dropout off."""
        return self.place()[:2]

    def score(self):
        """Spearman correlation of the cosines with the gold similarities."""
        return self.place(scored=True)[2]

    def place(self, change=lambda h: h, scored=False):
        """Uniformity, alignment and (if scored) Spearman of this encoder followed by a map of its rows."""
        w = self.world
        left, right = change(self.encode(w.left)), change(self.encode(w.right))
        numbers = [uniformity(left), alignment(left, right)]
        if scored:
            a, b = (normalize(change(self.encode(side)))[0] for side in (w.first, w.second))
            numbers.append(spearman((a * b).sum(axis=1), w.gold))
        return tuple(numbers)

    @property
    def points(self):
        return np.array([*self._points, self.measure()])

    @property
    def losses(self):
        return np.array(self._losses)

    def _step(self):
        chosen = self.rng.choice(len(self.world.train), BATCH, replace=False)
        first = self.world.train[chosen]
        second = self.world.say(self.world.meanings[chosen]) if self.setting == "paraphrase" else first
        masks = Masks(self.seed, self.steps, self.rate, SETTINGS[self.setting])
        labels = row_labels(np.tile(np.arange(BATCH), 2), np.repeat([0, 1], BATCH))
        x = np.concatenate([first, second])
        dropped, _ = dropout(x, masks.keep(0, labels, x.shape[1]), masks.scale)
        weight = self.parameters["weight"]
        h, linear_back = linear(dropped, weight, np.zeros(self.width))
        loss, back = info_nce(h[:BATCH], h[BATCH:], TEMPERATURE)
        if self.steps % self.every == 0:
            self._points.append(self.measure())
            self._losses.append(float(loss))
        gradients = self.parameters.zeros_like()
        gradients["weight"][...] = linear_back(np.concatenate(back()))[1]
        self.adam.step(gradients, LEARNING_RATE)


SWEEP = {"off": 0.0, "fixed 0.1": 0.1, "0.05": 0.05, "0.1": 0.1, "0.2": 0.2, "0.35": 0.35, "0.5": 0.5, "0.7": 0.7}


def sweep(seeds=3, steps=1000, **world):
    """Alignment, uniformity and Spearman per dropout rate of SWEEP, means over seeds. About half a minute."""
    modes = {"off": "no dropout", "fixed 0.1": "same mask"}
    means = []
    for name, rate in SWEEP.items():
        runs = [Trail(modes.get(name, "independent masks"), rate, seed, **world).run(steps) for seed in range(seeds)]
        means.append(np.mean([run.place(scored=True) for run in runs], axis=0)[[1, 0, 2]])
    return np.array(means)
