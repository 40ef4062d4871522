"""Exercise 11 (chapter 6): how many directions a cloud uses.

Scale the rows of X to length 1 (do not subtract their mean). Let e_k be the squares of the singular values, as shares
of their sum. The effective rank is exp of the entropy of these shares: 1 if all rows lie on one line, D if every
direction carries the same.
"""

import numpy as np  # noqa: F401


def effective_rank(X):
    """X (N, D), no zero row. Returns a number from 1 to min(N, D)."""
    raise NotImplementedError
