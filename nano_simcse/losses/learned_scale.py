"""What the losses with a learned scale share: s = e^a from the parameter a, with a ceiling, and checked arguments."""

import math

import numpy as np

from ..arrays import require_floats
from ..backend import array_module, on_host
from ..errors import InputError


def clipped_scale(x, log_scale, max_scale=math.inf):
    """(s, passes): s = min(e^log_scale, max_scale) in the precision and on the device of x; passes is 1, or 0 where
    the ceiling cut and no gradient reaches log_scale.

    Compared as logarithms, because exp(log 100) is above 100 in float64: a parameter clamped to log 100 would stay
    there for good.
    """
    xp, number = array_module(x), x.dtype.type
    if not max_scale > 0:
        raise InputError(f"max_scale is {max_scale}; expected a number above 0")
    a, ceiling = one_number(x, log_scale, "log_scale"), number(math.log(max_scale))
    exponent = xp.minimum(a, ceiling)
    if on_host(x) and exponent > math.log(np.finfo(x.dtype).max):
        raise InputError(f"log_scale is {a}, so large that its exponential overflows {x.dtype}")
    return xp.exp(exponent), (a <= ceiling).astype(x.dtype)


def one_number(x, value, name):
    """value as a 0-d array in the precision and on the device of x. Raises InputError if it is not one finite number.

    Whether it is finite is asked on the host only, where looking costs nothing.
    """
    value = array_module(x).asarray(value, dtype=x.dtype)
    if value.ndim:
        raise InputError(f"{name} has shape {value.shape}; expected one number")
    if on_host(value) and not math.isfinite(value):
        raise InputError(f"{name} is {value}; expected a finite number")
    return value


def check_pairs(queries, keys):
    """Raises InputError unless queries and keys are two float arrays (N, D) of one shape with N >= 1."""
    require_floats(queries=queries, keys=keys)
    if queries.ndim != 2 or queries.shape != keys.shape or queries.shape[0] == 0:
        raise InputError(f"queries {queries.shape} and keys {keys.shape} must be two (N, D) arrays of one shape")
