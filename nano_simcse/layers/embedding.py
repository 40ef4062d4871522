"""The embedding table: a linear layer whose input is one-hot.

Forward      y_m = table[ids_m]                       table (V, D), ids (M,) -> y (M, D)

Backward     each use of row v adds its gradient:     dtable[v] = sum over m with ids_m = v of dy_m
             (scatter-add; plain assignment would keep one use of each token and drop the others)
"""

from ..backend import array_module, scatter_add


def embedding(table, ids):
    """Rows of `table` picked by `ids`.

    table (V, D); ids (M,) integers in [0, V), validated where they were made, on the host. Returns (y (M, D),
    backward); backward(dy, into=None) -> dtable (V, D), added to `into` where a gradient buffer is given.
    """
    y = table[ids]

    def backward(dy, into=None):
        dtable = array_module(table).zeros_like(table) if into is None else into
        scatter_add(dtable, ids, dy)
        return dtable

    return y, backward
