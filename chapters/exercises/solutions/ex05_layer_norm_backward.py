"""Exercise 5 (chapter 2): backward of layer norm."""

import numpy as np


def layer_norm_backward(dy, x, gamma, eps):
    """dy, x (M, D); gamma (D,); eps > 0. Returns dx (M, D), dgamma (D,), dbeta (D,)."""
    centred = x - x.mean(axis=1, keepdims=True)
    r = 1 / np.sqrt((centred**2).mean(axis=1, keepdims=True) + eps)
    xhat = centred * r
    g = dy * gamma
    dx = r * (g - g.mean(axis=1, keepdims=True) - xhat * (g * xhat).mean(axis=1, keepdims=True))
    return dx, (dy * xhat).sum(axis=0), dy.sum(axis=0)
