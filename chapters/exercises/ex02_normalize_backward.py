"""Exercise 2 (chapter 1): backward of scaling rows to length 1.

Forward, row by row: y = x / |x|. Given dy = dL/dy, find dx = dL/dx.

Two things to think about before you derive it: what does y do when x grows along its own direction, and what does y do
when x is twice as long and moves sideways by the same amount?
"""

import numpy as np  # noqa: F401


def normalize_backward(dy, x):
    """dy, x (M, D), no row of x is zero. Returns dx (M, D)."""
    raise NotImplementedError
