"""Exercise 11 (chapter 6): how many directions a cloud uses."""

import numpy as np


def effective_rank(X):
    """X (N, D), no zero row. Returns a number from 1 to min(N, D)."""
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    energy = np.linalg.svd(unit, compute_uv=False) ** 2
    shares = energy[energy > 0] / energy.sum()
    return np.exp(-np.sum(shares * np.log(shares)))
