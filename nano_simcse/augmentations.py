"""Changes that a positive pair may differ by, each with the invariance it teaches.

Training on two views of x under an augmentation asks the encoder to treat both as the same thing. The list of
augmentations is therefore part of the specification, and `taught_invariances` prints that part.

Windows and images are float rows x (n, T); token rows are int ids (n, T). Every function takes a
numpy.random.Generator first, keeps the shape and the dtype, and leaves its argument alone.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .errors import InputError


def jitter(rng, x, size=0.1):
    """x + size * standard normal noise, in units of x."""
    return x + (size * rng.standard_normal(x.shape)).astype(x.dtype)


def scaling(rng, x, spread=0.3):
    """x * exp(spread * g), one standard normal g a row."""
    return x * np.exp(spread * rng.standard_normal((len(x), 1))).astype(x.dtype)


def brightness(rng, x, size=0.5):
    """x + size * g, one standard normal g a row: a shift of the level."""
    return x + (size * rng.standard_normal((len(x), 1))).astype(x.dtype)


def masking(rng, x, rate=0.15):
    """x with each entry set to 0 with probability `rate`."""
    _share(rate)
    return x * (rng.random(x.shape) >= rate).astype(x.dtype)


def crop(rng, x, least=0.7):
    """A random stretch of each row, a share `least` to 1 of it, resampled to full length by straight lines."""
    _share(least)
    n, length = x.shape
    kept = (least + (1 - least) * rng.random(n)) * (length - 1)
    first = rng.random(n) * (length - 1 - kept)
    place = first[:, None] + np.linspace(0, 1, length) * kept[:, None]
    left = np.minimum(place.astype(int), length - 2) if length > 1 else np.zeros_like(place, int)
    right, row = np.minimum(left + 1, length - 1), np.arange(n)[:, None]
    part = place - left
    return ((1 - part) * x[row, left] + part * x[row, right]).astype(x.dtype)


def word_deletion(rng, ids, rate=0.1, pad_id=0):
    """ids (n, T) with words dropped with probability `rate`, the rest moved left, the end filled with pad_id.

    A row never loses its last word.
    """
    _share(rate)
    real = ids != pad_id
    keep = real & (rng.random(ids.shape) >= rate)
    lost = real.any(axis=1) & ~keep.any(axis=1)
    keep[lost, real[lost].argmax(axis=1)] = True
    order = np.argsort(~keep, axis=1, kind="stable")
    return np.take_along_axis(np.where(keep, ids, pad_id), order, axis=1).astype(ids.dtype)


@dataclass(frozen=True)
class Augmentation:
    """A function and, in words, what its use declares to be no difference."""

    apply: Callable
    same: str


AUGMENTATIONS = {
    "jitter": Augmentation(jitter, "small independent noise"),
    "scaling": Augmentation(scaling, "the size of the signal"),
    "brightness": Augmentation(brightness, "the level of the signal"),
    "masking": Augmentation(masking, "single missing values"),
    "crop": Augmentation(crop, "position and speed"),
    "word deletion": Augmentation(word_deletion, "a missing word"),
}


def taught_invariances(names):
    """What an encoder trained with these augmentations is told not to see, one phrase each.

    The list is not complete: scaling rows to unit length and the encoder itself hide more (chapter 17).
    Raises InputError for an unknown name.
    """
    unknown = [name for name in names if name not in AUGMENTATIONS]
    if unknown:
        raise InputError(f"augmentation {unknown[0]!r} is not known; expected one of {', '.join(AUGMENTATIONS)}")
    return [AUGMENTATIONS[name].same for name in names]


def augment(rng, x, names):
    """x (n, T) under the named augmentations in turn, each with its default strength."""
    taught_invariances(names)
    for name in names:
        x = AUGMENTATIONS[name].apply(rng, x)
    return x


def _share(value):
    if not 0 <= value <= 1:
        raise InputError(f"a share must lie between 0 and 1, got {value}")
