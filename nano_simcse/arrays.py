"""Array arguments, checked: the kind of number decides whether a gradient comes out at all.

A gradient or a scale that is written in the type of its argument becomes 0 or 1 where that type is an integer, and no
error is raised. Looking at the type costs nothing on a device either; values are looked at on the host only.
"""

import numpy as np

from .backend import array_module, on_host
from .errors import InputError


def require_floats(**arrays):
    """InputError, naming the argument, for anything but an array of float32 or float64."""
    for name, x in arrays.items():
        _require(name, x, "fd", "float32 or float64")


def require_booleans(**arrays):
    """InputError, naming the argument, for anything but an array of bool."""
    for name, x in arrays.items():
        _require(name, x, "?", "bool")


def require_classes(name, x, count):
    """InputError, naming the argument, for anything but an array of integers in [0, count).

    NumPy would count negative ones from the end.
    """
    _require(name, x, np.typecodes["AllInteger"], "integers")
    if on_host(x) and x.size and not 0 <= x.min() <= x.max() < count:
        wrong = x.min() if x.min() < 0 else x.max()
        raise InputError(f"{name} hold {wrong}; expected integers from 0 to {count - 1}")


def _require(name, x, codes, expected):
    if not isinstance(x, array_module(x).ndarray):
        raise InputError(f"{name} is a {type(x).__name__}; expected an array of {expected}")
    if x.dtype.char not in codes:
        raise InputError(f"{name} is an array of {x.dtype}; expected one of {expected}")
