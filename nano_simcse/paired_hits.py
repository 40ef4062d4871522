"""Two systems, one set of queries: is the difference between their recalls more than luck?

Each query is a hit or a miss for either system, so there are four counts: both, a only, b only, neither. The
difference of the recalls is (b only - a only) / n; queries on which the systems agree say nothing about it.

Standard error of the difference, per query d_i = b_i - a_i in {-1, 0, 1}:

    paired      sqrt(mean d^2 - (mean d)^2) / sqrt(n),   mean d^2 = (a only + b only) / n
    unpaired    sqrt(p_a (1 - p_a) / n + p_b (1 - p_b) / n)       right for two different sets of queries

The paired one subtracts 2 cov(a, b) / n, and is smaller wherever the systems tend to hit the same queries.
Exact test: were the systems equal, each disagreement would be a fair coin; the two-sided p-value counts the splits of
the disagreements that are at least as uneven (McNemar's test in its exact form).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from .errors import InputError


@dataclass(frozen=True)
class PairedHits:
    """What `paired_hits` found; differences and errors in points of recall (percent)."""

    queries: int
    only_first: int
    only_second: int
    difference: float
    paired_error: float
    unpaired_error: float
    p_value: float


def paired_hits(first, second) -> PairedHits:
    """Compare the hits of two systems on the same queries.

    first, second (n,) booleans, or 0 and 1: whether each query found its target. `difference` is second minus first.
    Raises InputError for lengths that differ, no query, or a value that is neither hit nor miss.

    >>> r = paired_hits([1, 1, 0, 0, 0, 0, 0, 0], [1, 0, 1, 1, 1, 1, 1, 0])
    >>> r.difference, r.only_first, r.only_second, round(r.p_value, 6)
    (50.0, 1, 5, 0.21875)
    """
    a, b = _hits(first, "first"), _hits(second, "second")
    if len(a) != len(b):
        raise InputError(f"paired hits need one query list, got {len(a)} and {len(b)} queries")
    n, d = len(a), b - a
    only_first, only_second = int((d < 0).sum()), int((d > 0).sum())
    variance = a.mean() * (1 - a.mean()) + b.mean() * (1 - b.mean())
    disagree = only_first + only_second
    return PairedHits(
        queries=n,
        only_first=only_first,
        only_second=only_second,
        difference=100 * float(d.mean()),
        paired_error=100 * math.sqrt(d.var() / n),
        unpaired_error=100 * math.sqrt(variance / n),
        p_value=float(binomtest(only_second, disagree).pvalue) if disagree else 1.0,
    )


def _hits(values, name):
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or not len(array) or not np.isin(array, (0, 1)).all():
        raise InputError(f"{name} must be a list of hits (1) and misses (0), at least one")
    return array
