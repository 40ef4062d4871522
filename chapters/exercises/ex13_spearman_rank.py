"""Exercise 13 (chapter 8): Spearman's correlation, ties included.

Replace each value by its rank in its list (the smallest has rank 1; equal values share the mean of the places they
take), then take Pearson's correlation of the two lists of ranks. NumPy only.
"""

import numpy as np  # noqa: F401


def spearman_rank(a, b):
    """a, b (n,) numbers, not all equal. Returns a number from -1 to 1."""
    raise NotImplementedError
