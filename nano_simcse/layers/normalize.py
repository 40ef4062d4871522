"""Scaling rows to unit length.

Forward      y = x / |x|                          |x| the Euclidean length of a row

Backward     d y_e / d x_d = (1[d = e] - y_d y_e) / |x|, the projection off y, so

             dx = (dy - y (y . dy)) / |x|

             Only the part of dy perpendicular to y survives: moving along x changes its length, not its direction.
             For a pair of equal rows the gradient of their cosine is therefore zero (chapter 3).

Zero rows have no direction. The policy is to refuse them: on the host InputError names the row; on a device, where
looking would stall the stream, the division yields NaN and the training loop's check of the loss stops the run.

Nothing is scaled before it is squared, which is as it should be for what a network gives. For rows of any origin there
is `inputs.unit_rows`, which checks them and keeps their squares in range.
"""

from ..arrays import require_floats
from ..backend import array_module, on_host
from ..errors import InputError


def normalize(x):
    """Rows of x (M, D), float32 or float64, divided by their Euclidean length.

    Returns (y (M, D), backward); backward(dy) -> dx. Raises InputError for another type (in float16 the squares of
    ordinary rows overflow), and naming the first row whose length is 0 in the precision of x (a float32 row of entries
    below 1e-23 counts: its squares vanish).
    """
    require_floats(x=x)
    xp = array_module(x)
    length = xp.sqrt((x * x).sum(axis=1, keepdims=True))
    if on_host(x) and not length.all():
        row = int((length[:, 0] == 0).argmax())
        raise InputError(f"row {row} is the zero vector (in {x.dtype}), which has no direction to scale to unit length")
    y = x / length

    def backward(dy):
        return (dy - y * (y * dy).sum(axis=1, keepdims=True)) / length

    return y, backward
