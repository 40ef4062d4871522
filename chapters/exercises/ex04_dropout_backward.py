"""Exercise 4 (chapter 2): backward of dropout with a keep mask.

Inverted dropout: y = x where the keep mask is True and 0 elsewhere, scaled so that the expectation of y is x; p is the
chance of a unit to be dropped. Given dy = dL/dy and the mask of the forward pass, find dx.
"""

import numpy as np  # noqa: F401


def dropout_backward(dy, keep, p):
    """dy (M, D), keep bool (M, D), 0 <= p < 1. Returns dx (M, D)."""
    raise NotImplementedError
