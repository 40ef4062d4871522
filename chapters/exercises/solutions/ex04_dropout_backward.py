"""Exercise 4 (chapter 2): backward of dropout with a keep mask."""

import numpy as np


def dropout_backward(dy, keep, p):
    """dy (M, D), keep bool (M, D), 0 <= p < 1. Returns dx (M, D)."""
    return np.where(keep, dy, 0.0) / (1 - p)
