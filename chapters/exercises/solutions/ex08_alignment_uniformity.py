"""Exercise 8 (chapter 3): alignment and uniformity."""

import numpy as np


def log_mean_exp(x):
    top = x.max()
    return top + np.log(np.mean(np.exp(x - top)))


def alignment_uniformity(Za, Zb, t: float = 2.0):
    """Za, Zb (N, D), unit rows, N >= 2. Two numbers: alignment, uniformity of Za."""
    align = ((Za - Zb) ** 2).sum(axis=1).mean()
    i, j = np.triu_indices(len(Za), k=1)
    return align, log_mean_exp(-t * ((Za[i] - Za[j]) ** 2).sum(axis=1))
