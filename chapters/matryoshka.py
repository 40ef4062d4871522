"""Embeddings whose first n columns are embeddings: the loss, and what it buys.

Source: Kusupati et al., arXiv 2205.13147.
"""

import numpy as np
from trails import World

from nano_simcse.evaluation import spearman
from nano_simcse.layers import dropout
from nano_simcse.losses import info_nce
from nano_simcse.masks import Masks, row_labels
from nano_simcse.optim import Adam
from nano_simcse.parameters import Parameters

PREFIXES = (2, 4, 8, 16, 32)


def matryoshka_loss(queries, keys, temperature, prefixes):
    """Mean over n in prefixes of InfoNCE on the first n columns of queries, keys (N, D).

    Returns (loss, (dqueries, dkeys)): each prefix adds its gradient to the columns it saw.
    """
    loss, gradients = 0.0, (np.zeros_like(queries), np.zeros_like(keys))
    for n in prefixes:
        part, backward = info_nce(queries[:, :n], keys[:, :n], temperature)
        loss += part / len(prefixes)
        for total, gradient in zip(gradients, backward(), strict=True):
            total[:, :n] += gradient / len(prefixes)
    return loss, gradients


def prefix_scores(prefixes, seed=0, steps=400, batch=32, rate=0.1):
    """Spearman score of the first n columns, for n in PREFIXES, after training on the losses of `prefixes`.

    One matrix, 86 -> 32, on the sentence vectors of trails.py with dropout views.
    """
    world, rng = World(seed), np.random.default_rng([seed, 2])
    units = world.train.shape[1]
    parameters = Parameters({"weight": (units, PREFIXES[-1])}, dtype=np.float64)
    weight, gradients, adam = parameters["weight"], parameters.zeros_like(), Adam(parameters)
    weight[...] = rng.standard_normal(weight.shape) / np.sqrt(units)
    labels = row_labels(np.tile(np.arange(batch), 2), np.repeat([0, 1], batch))
    for step in range(steps):
        masks = Masks(seed, step, rate)
        x = np.tile(world.train[rng.choice(len(world.train), batch, replace=False)], (2, 1))
        x, _ = dropout(x, masks.keep(0, labels, units), masks.scale)
        _, (dq, dk) = matryoshka_loss(x[:batch] @ weight, x[batch:] @ weight, 0.05, prefixes)
        gradients["weight"][...] = x.T @ np.concatenate([dq, dk])
        adam.step(gradients, 0.01)
    first, second = world.first @ weight, world.second @ weight
    return [spearman(_cosines(first[:, :n], second[:, :n]), world.gold) for n in PREFIXES]


def _cosines(a, b):
    return (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
