"""Exercise 8 (chapter 3): alignment and uniformity.

Two numbers for two views of N sentences, rows of length 1:

    alignment    mean over sentences of the squared distance of the two views
    uniformity   log of the mean of exp(-t d^2) over the pairs of different rows of the first view, d their distance

t may be so large that every exponential is 0 in floating point; the logarithm still exists.
"""

import numpy as np  # noqa: F401


def alignment_uniformity(Za, Zb, t: float = 2.0):
    """Za, Zb (N, D), unit rows, N >= 2. Two numbers: alignment, uniformity of Za."""
    raise NotImplementedError
