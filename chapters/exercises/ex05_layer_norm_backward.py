"""Exercise 5 (chapter 2): backward of layer norm.

Forward, row by row of x (M, D):

    xhat = (x - mean) / sqrt(var + eps),   y = gamma * xhat + beta,   var the mean squared deviation (divided by D)

Given dy, find dx, dgamma and dbeta. One x_d reaches y in three ways.
"""

import numpy as np  # noqa: F401


def layer_norm_backward(dy, x, gamma, eps):
    """dy, x (M, D); gamma (D,); eps > 0. Returns dx (M, D), dgamma (D,), dbeta (D,)."""
    raise NotImplementedError
