"""The triplet margin loss: nearer to the positive than to one negative, by a margin.

Forward      a, p, n       rows of anchors, positives and negatives, scaled to unit length (or as they are)
             d+_i = |a_i - p_i|,  d-_i = |a_i - n_i|           Euclidean
             loss = mean_i max(0, d+_i - d-_i + m)

Backward     where the bracket is positive, and with 0 where it is not (the dead zone: margin met, nothing to learn):
             dL/da_i = (e+_i - e-_i) / B        e+ = (a - p) / d+,  e- = (a - n) / d-   unit vectors
             dL/dp_i = -e+_i / B
             dL/dn_i = +e-_i / B
             then the Jacobian of the normalisation.

             |x| has no derivative at 0; e is taken as 0 there, the middle of its subgradients. A batch that coincides
             in one point therefore gets no gradient at all although its loss is m: collapse is stationary here too.

On the unit sphere d = sqrt(2 - 2 cos) lies in [0, 2]. With m = 1 the dead zone is cos(a, n) <= 1 - (d+ + 1)^2 / 2, that
is 0.5 or less for a perfect positive, and unreachable once cos(a, p) <= 0.5. Rows as they are have another way out:
making every row longer scales both distances, and with them the margin that is met.

Source: Schroff et al., arXiv 1503.03832 (squared distances there); Reimers and Gurevych, arXiv 1908.10084, Section 3,
with Euclidean distances of rows as they are and m = 1.
"""

import math

from ..arrays import require_floats
from ..backend import array_module
from ..errors import InputError
from ..layers.normalize import normalize


def triplet(anchors, positives, negatives, margin=1.0, *, unit_length=True):
    """Mean triplet margin loss of B triples and its gradients.

    anchors, positives, negatives   (B, D), not normalised; row i of the three is one triple
    margin                          m >= 0, a distance
    unit_length                     compare directions (rows are normalised inside); False takes rows as they are

    Returns (loss, backward): loss a 0-d array; backward() -> (danchors, dpositives, dnegatives), each (B, D).
    A NaN in a row makes the loss NaN. Raises InputError for arrays that are not of floats, shapes that differ or hold
    no row, a margin that is negative or not finite, or a zero row that must be normalised.

    >>> import numpy as np
    >>> a, n = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    >>> float(triplet(a, a, n)[0])         # 0 - sqrt(2) + 1 < 0: the margin is met
    0.0
    >>> round(float(triplet(a, n, a)[0]), 6)      # sqrt(2) - 0 + 1
    2.414214
    """
    require_floats(anchors=anchors, positives=positives, negatives=negatives)
    shape = anchors.shape
    if len(shape) != 2 or shape[0] == 0 or not shape == positives.shape == negatives.shape:
        raise InputError(
            f"anchors {shape}, positives {positives.shape} and negatives {negatives.shape} "
            "must be three (B, D) arrays of one shape"
        )
    if not (math.isfinite(margin) and margin >= 0):
        raise InputError(f"margin is {margin}; expected a finite number of 0 or more")
    xp, number = array_module(anchors), anchors.dtype.type
    (a, a_back), (p, p_back), (n, n_back) = (
        normalize(rows) if unit_length else (rows, lambda dy: dy) for rows in (anchors, positives, negatives)
    )
    near, towards_positive = _distance(a - p)
    far, towards_negative = _distance(a - n)
    bracket = near - far + number(margin)
    loss = xp.maximum(bracket, number(0)).mean()  # unlike a choice by bracket > 0, NaN stays NaN

    def backward():
        weight = (bracket > 0) * number(1 / len(bracket))
        dp, dn = -weight * towards_positive, weight * towards_negative
        return a_back(-dp - dn), p_back(dp), n_back(dn)

    return loss, backward


def _distance(difference):
    """Lengths (B, 1) of rows, and the rows divided by them (0 where the length is 0)."""
    xp = array_module(difference)
    length = xp.sqrt((difference * difference).sum(axis=1, keepdims=True))
    return length, difference / xp.where(length == 0, difference.dtype.type(1), length)
