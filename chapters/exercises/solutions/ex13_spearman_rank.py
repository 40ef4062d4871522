"""Exercise 13 (chapter 8): Spearman's correlation, ties included."""

import numpy as np


def spearman_rank(a, b):
    """a, b (n,) numbers, not all equal. Returns a number from -1 to 1."""
    ranks = []
    for values in (a, b):
        below = (values[:, None] > values).sum(axis=1)
        equal = (values[:, None] == values).sum(axis=1)
        ranks.append(below + (equal + 1) / 2)
    return np.corrcoef(ranks[0], ranks[1])[0, 1]
