"""Central differences: the referee for every backward in this package.

(f(x + h e) - f(x - h e)) / 2h differs from the derivative along e by O(h^2) of truncation and O(eps / h) of
rounding; in float64, h near 1e-5 balances the two at about 1e-10 of the function's scale.
"""

import numpy as np

from .arrays import require_floats
from .errors import InputError


def numeric_gradient(f, x, h=1e-5, entries=None):
    """Gradient of the scalar function f with respect to the float64 array x, by central differences.

    f takes no argument and reads x, which is changed in place and restored. entries: flat indices to probe (all by
    default); the others are NaN in the result, which has the shape of x. Raises InputError for x that is no contiguous
    array of floats: a change of h must arrive where f reads, and integers would cut it to 0.
    """
    require_floats(x=x)
    gradient = np.full(x.shape, np.nan)
    flat, out = x.reshape(-1), gradient.reshape(-1)
    if not np.shares_memory(flat, x):
        raise InputError("x is not contiguous; expected an array whose flat form shares its memory with it")
    for i in range(x.size) if entries is None else entries:
        saved = flat[i]
        flat[i] = saved + h
        above = float(f())
        flat[i] = saved - h
        below = float(f())
        flat[i] = saved
        out[i] = (above - below) / (2 * h)
    return gradient


def relative_error(value, reference):
    """max |value - reference| / max |reference| over the entries that are not NaN in the reference.

    Relative to the largest entry of the tensor, not entry by entry: an entry that is exactly zero has no relative
    error of its own.
    """
    known = ~np.isnan(reference)
    scale = np.abs(reference[known]).max()
    return float(np.abs(np.asarray(value)[known] - reference[known]).max() / (scale if scale > 0 else 1.0))
