"""Arguments of the public methods, checked: a wrong one is told in one sentence that names it."""

import numpy as np

from .backend import to_host
from .errors import InputError


def listed(sentences):
    """The sentences as a list; InputError for a single thing that is not a string, and for a list with one in it."""
    texts = None
    try:
        if not isinstance(sentences, bytes | bytearray | memoryview):
            texts = list(sentences)
    except TypeError:
        pass  # not iterable
    if texts is None:
        kind = type(sentences).__name__
        raise InputError(f"sentences is {sentences!r:.60}, a {kind}; expected a string or a list of strings")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"sentence {i} is {text!r:.60}, a {type(text).__name__}; expected a string")
    return texts


def require_whole(name, value):
    """InputError, naming the argument, for anything but a whole number."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name} is {value!r:.60}, a {type(value).__name__}; expected a whole number")


def require_length(length, positions):
    """InputError for a max_length, in tokens, that a model with so many positions cannot have."""
    require_whole("max_length", length)
    if not 3 <= length <= positions:
        raise InputError(f"max_length is {length}; expected 3 to {positions}, the model's positions")


def number_rows(name, values):
    """Finite numbers (n, D) on the host; a vector (D,) becomes one row."""
    try:
        x = to_host(values)
    except (TypeError, ValueError):  # rows of several lengths
        raise InputError(f"{name} is not a table of numbers; expected rows of one width") from None
    if x.dtype.kind not in "fiu" or x.ndim not in (1, 2) or not x.shape[-1]:
        raise InputError(f"{name} has shape {x.shape} and type {x.dtype}; expected numbers of shape (n, D) or (D,)")
    x = np.atleast_2d(x if x.dtype.kind == "f" else x.astype(np.float64))
    bad = np.flatnonzero(~np.isfinite(x).all(axis=1))
    if len(bad):
        raise InputError(f"row {bad[0]} of {name} holds NaN or infinity; expected finite numbers")
    return x
