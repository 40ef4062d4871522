"""The linear layer.

Forward      y = x W + b            x (M, Din), W (Din, Dout), b (Dout,) -> y (M, Dout)

Backward     y_mo = sum_i x_mi W_io + b_o, so with dy = dL/dy:
             dL/dx_mi = sum_o dy_mo W_io        dx = dy W^T
             dL/dW_io = sum_m x_mi dy_mo        dW = x^T dy
             dL/db_o  = sum_m dy_mo             db = column sums of dy
"""

from ..backend import array_module


def linear(x, weight, bias):
    """y = x weight + bias.

    x (M, Din), weight (Din, Dout), bias (Dout,). Returns (y (M, Dout), backward);
    backward(dy) -> (dx, dweight, dbias).
    """
    y = x @ weight
    y += bias
    return y, lambda dy: linear_backward(x, weight, dy)


def linear_backward(x, weight, dy, out=None):
    """(dx, dweight, dbias) of `linear`, for a caller who makes x again instead of keeping it.

    out: where to write dx, which may be x.
    """
    dweight = x.T @ dy
    return array_module(x).matmul(dy, weight.T, out=out), dweight, column_sums(dy)


def column_sums(x):
    """Sums (D,) over the rows of x (M, D), as a product with a row of ones: faster, and in float32 more accurate."""
    return array_module(x).ones(len(x), x.dtype) @ x
