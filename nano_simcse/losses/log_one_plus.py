"""log(1 + total e^shift): the loss of a row whose negatives were summed relative to the largest of them.

With top the largest logit of the negatives and z the positive's, shift = top - z and total = sum_j exp(z_j - top):

Forward      value = log(1 + total e^shift)
Backward     slope = dvalue/dtotal = e^shift / (1 + total e^shift)

so that p_j = exp(z_j - top) slope is the probability of negative j. Whichever of 1 and e^shift is larger is taken
out of both, so that nothing overflows, and log1p keeps the digits of a value near 0.
"""

from ..backend import array_module


def log_one_plus(shift, total):
    """(value, slope), both of the shape of shift and total; total >= 0. 0 and e^shift where total is 0."""
    xp, number = array_module(shift), shift.dtype.type
    high = xp.maximum(shift, number(0))
    scaled, rest = total * xp.exp(shift - high), xp.exp(-high)
    value = xp.where(shift <= 0, xp.log1p(scaled), high + xp.log(scaled + rest))
    return value, xp.exp(shift - high) / (scaled + rest)
