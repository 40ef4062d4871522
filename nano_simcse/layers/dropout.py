"""Inverted dropout.

Forward      y = x * keep / (1 - p)       keep is 1 with probability 1 - p, else 0

             E[y] = x, so nothing needs rescaling at test time; Var[y] = x^2 p / (1 - p).

Backward     y is linear in x with the same factor:  dx = dy * keep / (1 - p)
             (dropping `keep` here, or drawing a new mask, is the classic mistake: the gradient would be that of a
             different function)

Source: Srivastava et al., JMLR 15 (2014); the inverted form scales while training.
"""

from ..arrays import require_floats
from ..backend import array_module, row_blocks


def dropout(x, keep, scale):
    """y = x * keep * scale.

    x (M, D); keep bool (M, D), or None for no dropout; scale = 1 / (1 - p). Returns (y, backward);
    backward(dy) -> dx. Neither changes its input. Raises InputError for x that is no array of floats: in integers the
    scale would be cut.
    """
    require_floats(x=x)
    if keep is None:
        return x, lambda dy: dy
    xp, factor = array_module(x), x.dtype.type(scale)

    def masked(values):
        out = xp.empty_like(values)
        for rows in row_blocks(values):
            xp.multiply(values[rows], keep[rows], out=out[rows])
            out[rows] *= factor
        return out

    return masked(x), masked
