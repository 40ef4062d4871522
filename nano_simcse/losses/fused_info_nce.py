"""InfoNCE over both views of a batch in two buffers that are reused: same values, no array of B x 2B made per step.

`candidate_info_nce` writes the mathematics; this file writes the same numbers over themselves:

    cosines   s = a^ [p^ a^]^T      kept as they are: geometry and mining read cosines, not logits
    work      (s - s_ii) / tau      then exp, in place; then the softmax; then g = dL/ds, from which backward reads

A removed candidate is written as -inf into `work`, so there is no mask array and no temperature at which removal stops
working. The price is one shared piece of memory: a backward is good until the next call, and says so afterwards.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..backend import array_module
from ..errors import InputError
from ..layers.normalize import normalize
from .candidate_info_nce import check_views, pair_mask
from .info_nce import check_temperature
from .log_one_plus import log_one_plus


@dataclass(frozen=True)
class BlockGeometry:
    """Shape of the anchors, read from their block of cosines: alignment with the positives, uniformity (t = 2),
    mean and largest cosine of distinct pairs. As in `nano_simcse.geometry`, in the precision of the batch."""

    alignment: float
    uniformity: float
    mean_pair_cosine: float
    max_pair_cosine: float


@dataclass(frozen=True)
class FusedResult:
    """loss (0-d), backward() -> (danchors, dpositives), negatives (B,) counted per anchor, geometry or None."""

    loss: np.ndarray
    backward: Callable
    negatives: np.ndarray
    geometry: BlockGeometry | None


class FusedInfoNCE:
    """The loss of `candidate_info_nce` with buffers that live from step to step and grow when a batch needs it.

    >>> loss_of = FusedInfoNCE()
    >>> u = np.eye(2, dtype=np.float32)
    >>> result = loss_of(u, u, 1.0)
    >>> round(float(result.loss), 6), result.negatives.tolist()         # log(1 + 2 exp(-1)); 2B - 2
    (0.551445, [2, 2])
    """

    def __init__(self):
        self._cosines = self._work = None
        self._shape, self._calls = (0, 0), 0

    def __call__(self, anchors, positives, temperature, *, candidates="both", pairs=(), geometry=False):
        """Loss of B anchors (B, D) against their positives (B, D), neither normalised nor changed.

        candidates: "cross", "same-view" or "both"; pairs: (i, j) of rows that mean the same and so are no negatives
        of each other; geometry: whether to read the shape of the anchors as well (not for "cross", which has no block
        of anchors). Returns FusedResult. Raises InputError and DegenerateTemperature as `candidate_info_nce` does.
        """
        check_views(anchors, positives, candidates)
        check_temperature(temperature, anchors.dtype)
        if geometry and candidates == "cross":
            raise InputError("the candidate set 'cross' has no block of anchor cosines to read a geometry from")
        n, same = len(anchors), pair_mask(pairs, len(anchors))
        a, a_back = normalize(anchors)
        p, p_back = normalize(positives)
        cosines, work = self._buffers(n, n if candidates == "cross" else 2 * n, a)
        array_module(a).matmul(a, p.T, out=cosines[:, :n])
        if candidates != "cross":
            array_module(a).matmul(a, a.T, out=cosines[:, n:])
        shape = block_geometry(a, p, cosines[:, n:], work[:, :n]) if geometry else None
        negatives = self._logits(cosines, work, candidates, same, temperature)
        loss = _softmax_in_place(work, temperature)
        call = self._calls

        def backward():
            if call != self._calls:
                raise InputError("backward of an earlier batch: the buffers hold a later one; call it before the next")
            da, dp = work[:, :n] @ p, work[:, :n].T @ a
            if candidates != "cross":
                da += work[:, n:] @ a + work[:, n:].T @ a
            return a_back(da), p_back(dp)

        return FusedResult(loss, backward, negatives, shape)

    def similarity(self):
        """A copy of the cosines of the last batch, (B, 2B), or (B, B) for "cross": free to keep and to change."""
        if self._cosines is None:
            raise InputError("there is no similarity matrix before the first batch")
        rows, columns = self._shape
        return self._cosines[: rows * columns].reshape(rows, columns).copy()

    @property
    def held_bytes(self):
        """Size of the two buffers."""
        return 0 if self._cosines is None else 2 * self._cosines.nbytes

    def _buffers(self, n, columns, like):
        """Two (n, columns) arrays, contiguous, cut from flat buffers that only ever grow."""
        self._calls += 1
        self._shape = (n, columns)
        held = self._cosines
        xp = array_module(like)
        if held is None or held.size < n * columns or held.dtype != like.dtype or array_module(held) is not xp:
            self._cosines, self._work = (xp.empty(n * columns, like.dtype) for _ in range(2))
        return tuple(flat[: n * columns].reshape(n, columns) for flat in (self._cosines, self._work))

    @staticmethod
    def _logits(cosines, work, candidates, same, temperature):
        """work <- (s - s_ii) / tau, -inf at the positive and at everything removed; returns negatives per row."""
        xp, (n, columns) = array_module(work), work.shape
        xp.subtract(cosines, cosines.diagonal()[:, None], out=work)
        work *= work.dtype.type(1 / temperature)
        rows = xp.arange(n)
        work[rows, rows] = -np.inf
        if candidates != "cross":
            work[rows, n + rows] = -np.inf
        if candidates == "same-view":
            work[:, :n] = -np.inf
        i, j = (xp.asarray(index) for index in np.nonzero(same))
        for block in range(columns // n):
            work[i, block * n + j] = -np.inf
        blocks = 2 if candidates == "both" else 1
        return blocks * (n - 1 - same.sum(axis=1))


def block_geometry(a, p, cosines, scratch, t=2.0):
    """BlockGeometry of unit rows a (B, D) with positives p, given their cosines (B, B); scratch (B, B) is overwritten.

    Distances of pairs that are meant to be close come from differences of rows, which keep their digits where
    2 - 2 cos has lost them; the mean of exponentials is taken with its largest term outside, so a wide kernel does not
    underflow in float32.
    """
    xp, n = array_module(a), len(a)
    rows = xp.arange(n)
    scratch[...] = cosines
    scratch[rows, rows] = -np.inf
    top = scratch.max() if n > 1 else xp.asarray(np.nan)
    scratch -= top
    scratch *= scratch.dtype.type(2 * t)
    xp.exp(scratch, out=scratch)
    pairs = n * (n - 1)
    mean = (float((a.sum(axis=0) ** 2).sum()) - n) / pairs if pairs else float("nan")
    log_mean = float(xp.log(scratch.sum() / pairs)) - 2 * t * (1 - float(top)) if pairs else float("nan")
    return BlockGeometry(float(((a - p) ** 2).sum(axis=1).mean()), log_mean, mean, float(top))


def _softmax_in_place(work, temperature):
    """Mean loss of differences d_ij = (s_ij - s_ii) / tau; work becomes dL/ds."""
    xp, number, n = array_module(work), work.dtype.type, len(work)
    top = work.max(axis=1, keepdims=True)
    shift = xp.where(top == -np.inf, number(0), top)
    work -= shift
    xp.exp(work, out=work)
    total = work.sum(axis=1, keepdims=True)
    row_loss, slope = log_one_plus(shift, total)
    work *= slope
    rows = xp.arange(n)
    work[rows, rows] = -work.sum(axis=1)
    work *= number(1 / (n * temperature))
    return row_loss.mean()
