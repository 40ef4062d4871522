"""The tanh head: one linear layer and a tanh on the pooled row, BERT's pooler and SimCSE's training head.

Forward      y = tanh(x W + b)            x (B, D), W (D, D), b (D,)

Backward     d tanh(a) / da = 1 - tanh(a)^2, then the linear layer's backward with da = dy (1 - y^2)
"""

from ..backend import array_module
from .linear import linear


def tanh_head(x, weight, bias):
    """y = tanh(x weight + bias).

    x (B, D), weight (D, Dout), bias (Dout,). Returns (y (B, Dout), backward);
    backward(dy) -> (dx, dweight, dbias).
    """
    a, linear_backward = linear(x, weight, bias)
    y = array_module(x).tanh(a)

    def backward(dy):
        return linear_backward(dy * (1 - y * y))

    return y, backward
