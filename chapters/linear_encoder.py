"""The smallest encoder that can learn: one matrix, trained on two dropout views of each input vector.

The loss is handed in, so that one training step serves every objective a chapter wants to compare. The vectors are
sentences of trails.World: a few latents written redundantly, and much that has nothing to do with meaning.
"""

import numpy as np

from nano_simcse.layers import dropout, linear
from nano_simcse.masks import Masks, row_labels
from nano_simcse.optim import Adam
from nano_simcse.parameters import Parameters


class LinearEncoder:
    """h = x W. units: entries of x; width: entries of h. Adam with a constant rate `lr`, dropout `rate` on x."""

    def __init__(self, units, width=16, seed=0, lr=0.01, rate=0.1):
        self.seed, self.lr, self.rate, self.steps = seed, lr, rate, 0
        self.parameters = Parameters({"weight": (units, width)}, dtype=np.float64)
        start = np.random.default_rng([seed, 1]).standard_normal((units, width)) / np.sqrt(units)
        self.parameters["weight"][...] = start
        self.adam = Adam(self.parameters)

    def encode(self, x):
        """Embeddings (n, width) without dropout."""
        return x @ self.parameters["weight"]

    def step(self, x, loss_of):
        """One update on two views of x (n, units); loss_of(queries, keys) -> (loss, backward). Returns the loss."""
        n = len(x)
        masks = Masks(self.seed, self.steps, self.rate)
        keep = masks.keep(0, row_labels(np.tile(np.arange(n), 2), np.repeat([0, 1], n)), x.shape[1])
        views = np.concatenate([x, x])
        if keep is not None:
            views, _ = dropout(views, keep, masks.scale)
        weight = self.parameters["weight"]
        h, linear_back = linear(views, weight, np.zeros(weight.shape[1]))  # (2 n, width): 2 n rows encoded
        loss, loss_back = loss_of(h[:n], h[n:])
        gradients = self.parameters.zeros_like()
        gradients["weight"][...] = linear_back(np.concatenate(loss_back()))[1]
        self.adam.step(gradients, self.lr)
        self.steps += 1
        return float(loss)
