"""What to watch once an encoder serves: six readings, each with a limit, because none of these faults raises an error.

A reading compares now with then: keep the baseline arrays (norms, nearest distances, scores) of a day that was judged
good, and hand them in. Distributions are compared by the two-sample Kolmogorov-Smirnov distance, whose limit at level
alpha is sqrt(ln(2 / alpha) / 2) sqrt((n + m) / (n m)).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .errors import InputError
from .geometry import effective_rank, mean_pair_cosine
from .inputs import members


@dataclass(frozen=True)
class Reading:
    """One number and whether it is past its limit; `str` is a line for a log."""

    name: str
    value: float
    limit: float
    alert: bool
    detail: str = ""

    def __str__(self):
        state = "ALERT" if self.alert else "ok"
        tail = f"  {self.detail}" if self.detail else ""
        return f"{state:5}  {self.name}: {self.value:.4g} (limit {self.limit:.4g}){tail}"


def probe_cosine(embeddings, most=0.9, least_rank=3.0):
    """Mean cosine of a fixed set of unrelated probe texts (n, D), against collapse.

    Alerts above `most`, or when the centred effective rank is below `least_rank`: points on one line have mean cosine
    near 0 and are collapsed all the same.
    """
    value, rank = mean_pair_cosine(embeddings), effective_rank(embeddings, centre=True)
    return Reading("probe cosine", value, most, value > most or rank < least_rank, f"effective rank {rank:.2f}")


def probe_recall(retrieved, gold, least):
    """Share of frozen, labelled probe queries whose right row is among those the serving index retrieved.

    retrieved (q, k) row numbers from the index that serves, not from an exact search; gold (q,). Alerts below `least`.
    """
    retrieved, gold = np.asarray(retrieved), np.asarray(gold)
    if retrieved.ndim != 2 or gold.shape != retrieved.shape[:1] or not len(gold):
        raise InputError(f"retrieved {retrieved.shape} and gold {gold.shape} must be (q, k) and (q,), q >= 1")
    value = float((retrieved == gold[:, None]).any(axis=1).mean())
    return Reading(f"probe recall at {retrieved.shape[1]}", value, least, value < least)


def shift(name, baseline, current, alpha=1e-3):
    """Has a distribution moved? Kolmogorov-Smirnov distance of current (m,) from baseline (n,), alert past its limit.

    For query norms, distances to the nearest row, and scores on normal data (every threshold moves with those).
    alpha: how often an unmoved distribution may raise the alert.
    """
    x, y = (np.sort(np.asarray(values, np.float64)) for values in (baseline, current))
    if x.ndim != 1 or y.ndim != 1 or not (len(x) and len(y)) or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError(f"{name} needs two lists of finite numbers, each with at least one")
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}; expected a level between 0 and 1")
    at = np.concatenate([x, y])
    distance = np.abs(np.searchsorted(x, at, "right") / len(x) - np.searchsorted(y, at, "right") / len(y)).max()
    limit = math.sqrt(math.log(2 / alpha) / 2 * (len(x) + len(y)) / (len(x) * len(y)))
    detail = f"median {np.median(x):.4g} -> {np.median(y):.4g}"
    return Reading(name, float(distance), limit, bool(distance > limit), detail)


def staleness(versions: Sequence[str], current: str, most=0.0):
    """Share of corpus rows that another encoder version than `current` embedded; the normal value is 0."""
    versions = members("versions", versions, "a list of versions")
    if not versions:
        raise InputError("staleness needs the version of at least one row")
    value = sum(version != current for version in versions) / len(versions)
    return Reading("staleness", value, most, value > most, f"{len(set(versions))} versions")


def coverage(retrieved, catalogue: int, least):
    """Share of the catalogue that the retrieved sets (q, k) of many queries touch; alerts below `least`.

    A collapsed or popularity-ridden space answers every query with the same few rows. At most q k / catalogue.
    """
    retrieved = np.asarray(retrieved)
    if retrieved.size == 0 or catalogue < 1 or retrieved.min() < 0 or retrieved.max() >= catalogue:
        raise InputError(f"retrieved rows must lie in [0, {catalogue}) and there must be some")
    value = len(np.unique(retrieved)) / catalogue
    return Reading("coverage", value, least, value < least)


def nearest_distances(scores):
    """1 - the largest cosine of every query, from scores (q, n): grows when queries move away from the corpus."""
    scores = np.asarray(scores)
    if scores.ndim != 2 or 0 in scores.shape:
        raise InputError(f"scores {scores.shape} must be (q, n) cosines")
    return 1 - scores.max(axis=1)
