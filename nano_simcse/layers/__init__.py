"""Layers by hand: each returns its output and the function that undoes it.

    y, backward = layer_norm(x, gamma, beta)
    dx, dgamma, dbeta = backward(dy)

One file per layer; each holds the derivation, the forward and the backward.
"""

from .attention import attention, softmax
from .dropout import dropout
from .embedding import embedding
from .gelu import gelu
from .head import tanh_head
from .layer_norm import layer_norm
from .linear import linear, linear_backward
from .normalize import normalize
from .pooling import POOLINGS, pool

__all__ = [
    "POOLINGS",
    "attention",
    "dropout",
    "embedding",
    "gelu",
    "layer_norm",
    "linear",
    "linear_backward",
    "normalize",
    "pool",
    "softmax",
    "tanh_head",
]
