"""Arguments of the public methods, checked: a wrong one is told in one sentence that names it."""

import math
import numbers

import numpy as np

from .backend import array_module, on_host, to_host
from .errors import InputError
from .layers.normalize import normalize

SINGLE = str | bytes | bytearray | memoryview  # iterable, and yet one thing


def members(name, values, expected):
    """The values as a list; InputError, naming the argument, for one string or anything else that is not a list.

    A string would be read letter by letter, and give an answer.
    """
    try:
        if not isinstance(values, SINGLE):
            return list(values)
    except TypeError:
        pass  # not iterable
    raise InputError(f"{name} is {values!r:.60}, a {type(values).__name__}; expected {expected}")


def listed(sentences, expected="a list of strings"):
    """The sentences as a list; InputError for a single thing, and for a list with something in it that is no string."""
    texts = members("sentences", sentences, expected)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"sentence {i} is {text!r:.60}, a {type(text).__name__}; expected a string")
    return texts


def is_whole(value, least=-math.inf):
    """Whether `value` is a whole number of at least `least`; True and False are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least


def require_whole(name, value):
    """InputError, naming the argument, for anything but a whole number."""
    if not is_whole(value):
        raise InputError(f"{name} is {value!r:.60}, a {type(value).__name__}; expected a whole number")


def require_count(name, value, least=1):
    """InputError, naming the argument, for anything but a whole number of at least `least`."""
    require_whole(name, value)
    if value < least:
        raise InputError(f"{name} is {value}; expected a whole number of at least {least}")


def require_number(name, value, positive=False):
    """InputError, naming the argument, for anything but a finite number, above 0 where it must be `positive`."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool)
    if not (real and math.isfinite(value) and (value > 0 or not positive)):
        raise InputError(f"{name} is {value!r:.60}; expected a finite number{' above 0' if positive else ''}")


def require_width(name, rows, holder, width):
    """InputError where `rows` (n, D) have another width than those that `holder`, a verb with its subject, goes by."""
    if rows.shape[1] != width:
        raise InputError(f"{name} are {rows.shape[1]} wide, but {holder} rows of width {width}")


def require_length(length, positions):
    """InputError for a max_length, in tokens, that a model with so many positions cannot have."""
    require_whole("max_length", length)
    if not 3 <= length <= positions:
        raise InputError(f"max_length is {length}; expected 3 to {positions}, the model's positions")


def number_rows(name, values):
    """Finite numbers (n, D) on the host, float32 or float64; a vector (D,) becomes one row, integers float64."""
    x = to_host(_array(name, values))
    if x.dtype.kind not in "fiu" or x.ndim not in (1, 2) or not x.shape[-1]:
        raise InputError(f"{name} has shape {x.shape} and type {x.dtype}; expected numbers of shape (n, D) or (D,)")
    x = np.atleast_2d(x.astype(_precision(x.dtype) if x.dtype.kind == "f" else np.float64, copy=False))
    bad = np.flatnonzero(~np.isfinite(x).all(axis=1))
    if len(bad):
        raise InputError(f"row {bad[0]} of {name} holds NaN or infinity; expected finite numbers")
    return x


def unit_rows(x, name="embeddings", dtype=None):
    """x / |x| row by row, checked: embeddings (n, D), n >= 0, to unit rows (n, D), in the memory that x is in.

    x: an array of NumPy or CuPy, or a list of rows; name: what an error calls it; dtype: of the result and of all
    arithmetic, by default float64 for float64 and float32 for the rest (float16, float32, integers).
    Each row is divided by its largest entry first: squares of entries above 1e19 or below 1e-23 leave the range of
    float32. Raises InputError for another number of dimensions, D = 0, anything but real numbers, and, naming the
    first row, for a NaN or infinity and for a zero row.
    """
    x = _array(name, x)
    if x.ndim != 2 or x.shape[1] == 0:
        raise InputError(f"{name} must have shape (n, D) with D >= 1, got {x.shape}.")
    if x.dtype.kind not in "fiub":
        raise InputError(f"{name} must be real numbers, got dtype {x.dtype}.")
    x = x.astype(_precision(x.dtype) if dtype is None else dtype, copy=False)
    xp = array_module(x)
    largest = xp.abs(x).max(axis=1, keepdims=True)
    for bad, fault in (
        (~xp.isfinite(largest), "holds a NaN or infinity"),
        (largest == 0, "is the zero vector, whose cosine is undefined"),
    ):
        if bad.any():
            raise InputError(f"{name} row {int(bad[:, 0].argmax())} {fault}.")
    return normalize(x / largest)[0]


def _array(name, values):
    """`values` as an array, on the device where they are on one; InputError for rows of several lengths."""
    try:
        return np.asarray(values) if on_host(values) else values
    except (TypeError, ValueError):
        raise InputError(f"{name} is not a table of numbers; expected rows of one width") from None


def _precision(dtype):
    """float64 where numbers of `dtype` have more digits than float32, else float32."""
    return np.float64 if dtype.kind == "f" and dtype.itemsize > 4 else np.float32
