"""The shape of a cloud of embeddings: how close positives are, how evenly rows spread, how many directions they use.

Every measure scales rows to unit length first, works in float64 on the host, and returns Python floats. They are
instruments, not losses: `chapters/` derives their gradients.
"""

import math
from dataclasses import asdict, dataclass

import numpy as np
from scipy.special import hyp0f1, logsumexp

from . import inputs
from .backend import on_host, to_host
from .errors import InputError

PAIR_BLOCK = 1 << 22  # cosines held at once: 32 MB


def unit_rows(x):
    """`inputs.unit_rows` of x (N, D), N >= 1, in float64 on the host. Raises InputError as that does, or for no row."""
    x = inputs.unit_rows(x if on_host(x) else to_host(x), dtype=np.float64)
    if not len(x):
        raise InputError(f"embeddings of shape {x.shape} are not a table (N, D) with at least one row")
    return x


def alignment(x, y):
    """Mean squared distance between paired unit rows, mean |x_i - y_i|^2 = 2 - 2 mean cos; 0 is best, 4 worst.

    x, y (N, D), row i of each a positive pair. Source: Wang and Isola, arXiv 2005.10242, with exponent 2.
    """
    x, y = unit_rows(x), unit_rows(y)
    if x.shape != y.shape:
        raise InputError(f"paired embeddings must have one shape, got {x.shape} and {y.shape}")
    return float(((x - y) ** 2).sum(axis=1).mean())


def uniformity(x, t=2.0, include_self=False):
    """log of the mean over pairs of exp(-t |x_i - x_j|^2), on unit rows; 0 is collapse, lower is more even.

    x (N, D). Distinct pairs by default (the unbiased estimate); include_self adds the N pairs of a row with itself,
    which pulls the value towards 0 for small N. Never below -4 t; for t = 2 rows spread over a high-dimensional
    sphere approach -4. Source: Wang and Isola, arXiv 2005.10242.
    """
    x = unit_rows(x)
    n = len(x)
    if n < 2 and not include_self:
        raise InputError("uniformity needs at least two rows; got 1")
    parts = []
    for start, cosines in _cosine_blocks(x):
        exponents = -2 * t * (1 - cosines)
        if not include_self:
            rows = np.arange(len(cosines))
            exponents[rows, start + rows] = -np.inf
        parts.append(logsumexp(exponents))
    return float(logsumexp(parts) - math.log(n * n if include_self else n * (n - 1)))


def mean_pair_cosine(x):
    """Mean cosine over distinct pairs, (N^2 |mean|^2 - N) / (N (N - 1)): no N x N matrix is needed."""
    x = unit_rows(x)
    n = len(x)
    if n < 2:
        raise InputError("a pair cosine needs at least two rows; got 1")
    return float(((x.sum(axis=0) ** 2).sum() - n) / (n * (n - 1)))


def max_pair_cosine(x):
    """Largest cosine between two distinct rows: 1 where a duplicate exists."""
    x = unit_rows(x)
    if len(x) < 2:
        raise InputError("a pair cosine needs at least two rows; got 1")
    best = -1.0
    for start, cosines in _cosine_blocks(x):
        rows = np.arange(len(cosines))
        cosines[rows, start + rows] = -1
        best = max(best, float(cosines.max()))
    return best


def norm_of_mean(x):
    """Length of the mean of the unit rows: 0 for a balanced cloud, 1 for a single point."""
    return float(np.linalg.norm(unit_rows(x).mean(axis=0)))


def spectrum(x, centre=False):
    """Singular values of the unit rows, largest first; centre=True subtracts the mean row before."""
    x = unit_rows(x)
    return np.linalg.svd(x - x.mean(axis=0) if centre else x, compute_uv=False)


def spectrum_decay(x):
    """Singular values divided by the largest: the decay curve of the spectrum, 1 first."""
    s = spectrum(x)
    return s / s[0]


def effective_rank(x, centre=False):
    """exp of the entropy of the shares s_i^2 / sum s^2: how many directions carry the cloud, from 1 to min(N, D).

    The shares are those of the eigenvalues of x^T x for unit rows, not centred unless centre=True: a cone around one
    direction counts as nearly 1. A cloud that is one single point has no centred spectrum; its centred rank is 0.
    Source: Roy and Vetterli, EUSIPCO 2007, on eigenvalues.
    """
    return entropy_rank(variance_shares(x, centre))


def entropy_rank(shares):
    """exp of the entropy of shares (K,) that sum to 1: the number of equal shares with that entropy; 0 for none."""
    shares = shares[shares > 0]
    return float(math.exp(-(shares * np.log(shares)).sum())) if len(shares) else 0.0


def variance_shares(x, centre=False):
    """Shares s_i^2 / sum s^2 of the directions of the unit rows, largest first; they sum to 1.

    Of x^T x for the unit rows x, or of their covariance with centre=True. A cloud that is one single point has no
    covariance: its shares, centred, are all 0.
    """
    squares = spectrum(x, centre) ** 2
    total = squares.sum()
    return squares / total if total > len(squares) * np.finfo(float).eps else np.zeros_like(squares)


def coordinate_shares(x):
    """mean over rows of x_d^2 for unit rows: the share (D,) of the squared length in each coordinate; sums to 1.

    An even cloud has 1 / D in each. One coordinate with a large share is in every cosine, whatever the texts.
    Source: Timkey and van Schijndel, arXiv 2109.04404, who count the shares of the mean cosine.
    """
    return (unit_rows(x) ** 2).mean(axis=0)


def even_uniformity(dimension, t=2.0):
    """Uniformity of rows spread evenly over the unit sphere in `dimension` dimensions, in expectation.

        log E exp(-2 t (1 - c)) = -2 t + log 0F1(; D/2; t^2)         c the cosine of two independent points

    0F1 is the confluent hypergeometric limit function. For t = 2: -3.84 at D = 50, -3.98 at D = 384, -4 in the limit.
    """
    return float(-2 * t + math.log(hyp0f1(dimension / 2, t * t)))


@dataclass(frozen=True)
class GeometryReport:
    """All measures of one cloud; alignment is None where no positive pairs were given."""

    rows: int
    alignment: float | None
    uniformity: float
    mean_pair_cosine: float
    max_pair_cosine: float
    norm_of_mean: float
    effective_rank: float
    centred_effective_rank: float

    def as_dict(self):
        return asdict(self)


def geometry_report(x, positives=None):
    """Every measure for x (N, D); positives (N, D) adds the alignment of row i with row i."""
    return GeometryReport(
        rows=len(x),
        alignment=None if positives is None else alignment(x, positives),
        uniformity=uniformity(x),
        mean_pair_cosine=mean_pair_cosine(x),
        max_pair_cosine=max_pair_cosine(x),
        norm_of_mean=norm_of_mean(x),
        effective_rank=effective_rank(x),
        centred_effective_rank=effective_rank(x, centre=True),
    )


@dataclass(frozen=True)
class CollapseReport:
    """Verdict of `collapse_guard`: whether the cloud has collapsed, and every reason found."""

    collapsed: bool
    reasons: tuple


def collapse_guard(x, loss=None, candidates=None, least_rank=3.0, least_spread=1e-4, chance_margin=0.02):
    """Has this cloud collapsed? Judged by what separates rows, not by the mean cosine.

    x (N, D); loss and candidates: the current InfoNCE loss and its number of candidates, if known. Three signs:
    spread      1 - |mean|^2, the variance of the unit rows, below `least_spread`: one point
    rank        effective rank of the centred rows below `least_rank` (or D, or half of the N - 1 directions that N rows
                can have, if those are smaller): two antipodal points, a circle; their mean cosine is near 0 and looks
                healthy
    chance      a loss within `chance_margin` (relative) of log(candidates): the rows are told apart no better than by
                guessing
    A tight cone whose rows still differ in many directions raises none of them, although its mean cosine is near 1.
    Raises InputError for unusable rows, and for fewer than 2 candidates, among which there is nothing to guess.
    """
    if candidates is not None and not candidates >= 2:
        raise InputError(f"candidates is {candidates}; expected at least 2")
    reasons = []
    spread = max(0.0, 1 - norm_of_mean(x) ** 2)  # equal rows: rounding would make it negative
    rank = effective_rank(x, centre=True)
    floor = min(least_rank, 0.99 * np.shape(x)[1], (len(x) - 1) / 2)
    if spread < least_spread:
        reasons.append(f"all rows lie within one point: their variance is {spread:.2g}")
    elif rank < floor:
        reasons.append(f"the rows vary in about {rank:.1f} directions only (effective rank, centred)")
    if loss is not None and candidates is not None and abs(loss / math.log(candidates) - 1) < chance_margin:
        reasons.append(f"the loss {loss:.3f} is at the chance level log {candidates} = {math.log(candidates):.3f}")
    return CollapseReport(bool(reasons), tuple(reasons))


def _cosine_blocks(x):
    """(first row, cosines of a block of rows with all rows): N x N pairs without holding them at once."""
    step = max(1, PAIR_BLOCK // len(x))
    for start in range(0, len(x), step):
        yield start, x[start : start + step] @ x.T
