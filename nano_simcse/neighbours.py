"""Anomaly scores: how far a row lies from the nearest rows that are known to be normal.

    score(x) = (1/k) sum over the k nearest reference rows r of |x^ - r^|,    |x^ - r^|^2 = 2 - 2 cos(x, r)

Rows are scaled to unit length first, as the loss does, so the score lies in [0, 2]. It is a distance. It has no unit in
common with a likelihood, and it changes its meaning with the encoder: `NeighbourScores` therefore refuses arithmetic,
and a `Threshold` refuses scores of another encoder version.

Letters: n reference rows, m rows to score, k neighbours, D width.
"""

from dataclasses import dataclass

from .backend import array_module, to_host
from .errors import InputError
from .inputs import require_whole, require_width, unit_rows


class NeighbourScores:
    """Distances (m,) in `values`, with the `version` of the encoder they were measured in.

    What they are for: `above(threshold)` and `most_unusual(count)`. Adding, multiplying or exponentiating them, with a
    log-likelihood say, raises InputError; whoever knows better works with `values`. So does a NaN among the values: it
    is above no threshold, and would pass for normal.
    """

    def __init__(self, values, version=""):
        if array_module(values).isnan(values).any():
            raise InputError("scores hold a NaN, which is neither normal nor an anomaly")
        self.values, self.version = values, version

    def __len__(self):
        return len(self.values)

    def above(self, threshold):
        """bool (m,): which rows raise an alert. Raises InputError for a threshold of another encoder version."""
        if threshold.version != self.version:
            raise InputError(
                f"the threshold belongs to encoder version {threshold.version!r}, the scores to {self.version!r}; "
                "distances of two encoders are not comparable"
            )
        return self.values > threshold.value

    def most_unusual(self, count):
        """Indices of the `count` largest scores, largest first, equal ones in order of their index."""
        xp = array_module(self.values)
        return xp.argsort(-self.values, kind="stable")[:count]

    def normal_share(self, held_out):
        """(1 + number of held-out normal scores >= s) / (1 + n_held) for every score s: (m,), in (0, 1].

        For a row that is exchangeable with the held-out ones this is uniform (a p-value, calibrated as a rate of false
        alarms). It is not the probability that the row is normal: that would need to know how common anomalies are.
        Source: Laxhammar and Falkman 2010 (conformal anomaly detection).
        """
        xp = array_module(self.values)
        if held_out.version != self.version:
            raise InputError(f"held-out scores are of version {held_out.version!r}, these of {self.version!r}")
        rank = len(held_out) - xp.searchsorted(xp.sort(held_out.values), self.values, side="left")
        return (1 + rank) / (1 + len(held_out))

    def _refuse(self, *_, **__):
        raise InputError(
            "a neighbour score is a distance, not a probability or likelihood: it has no calibration and does not add "
            "to either; compare it with a threshold, or use .values"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __pow__ = __rpow__ = __neg__ = __float__ = __array__ = __array_ufunc__ = _refuse


@dataclass(frozen=True)
class Threshold:
    """A quantile of `count` scores of held-out normal rows, for one encoder version."""

    value: float
    quantile: float
    count: int
    version: str = ""


def quantile_threshold(held_out, quantile):
    """The held-out score of rank ceil(quantile (n_held + 1)), counted from the smallest.

    A further normal row, exchangeable with these, exceeds it with probability at most 1 - quantile.
    held_out: NeighbourScores of normal rows that are NOT in the reference. Raises InputError for a quantile outside
    (0, 1) or one that so few scores cannot resolve.
    """
    n = len(held_out)
    if not 0 < quantile < 1:
        raise InputError(f"quantile is {quantile}; expected a number between 0 and 1")
    rank = int(-(-quantile * (n + 1) // 1))
    if rank > n:
        raise InputError(f"{n} held-out scores cannot resolve the quantile {quantile}")
    value = array_module(held_out.values).sort(held_out.values)[rank - 1]
    return Threshold(float(to_host(value)), quantile, n, held_out.version)


class NormalReference:
    """The normal rows that new rows are compared with.

    embeddings (n, D), k <= n neighbours, version: a name for the encoder that made them. `extend` adds rows (a new kind
    of normal) without any training. Raises InputError for k out of range and, here and in the methods, for rows of
    another width and as `inputs.unit_rows` does.
    """

    def __init__(self, embeddings, k=5, version=""):
        rows = unit_rows(embeddings)
        require_whole("k", k)
        if not 1 <= k <= len(rows):
            raise InputError(f"k is {k}; expected a whole number from 1 to the {len(rows)} reference rows")
        self.k, self.version, self._rows = k, version, rows

    def __len__(self):
        return len(self._rows)

    def extend(self, embeddings, version=""):
        """Add normal rows (m, D) of the same encoder version."""
        if version != self.version:
            raise InputError(f"the reference is of version {self.version!r}, not {version!r}; re-embed it")
        rows = self._unit(embeddings)
        self._rows = array_module(rows).concatenate([self._rows, rows])

    def evidence(self, embeddings, without_self=False):
        """(ids (m, k), distances (m, k)) of the k nearest reference rows, nearest first, ties in order of their index.

        without_self: embeddings are the reference rows themselves; no row is its own neighbour (needs k < n).
        """
        x = self._unit(embeddings)
        xp = array_module(x)
        cosines = x @ self._rows.T
        if without_self:
            if x.shape != self._rows.shape or self.k >= len(self):
                raise InputError(f"without_self needs the {len(self)} reference rows and a smaller k")
            cosines = xp.where(xp.eye(len(x), dtype=bool), -xp.inf, cosines)
        ids = xp.argsort(-cosines, axis=1, kind="stable")[:, : self.k]
        # From differences: 2 - 2 cos would lose the digits of a near-duplicate.
        return ids, xp.sqrt(((x[:, None] - self._rows[ids]) ** 2).sum(axis=2))

    def scores(self, embeddings, without_self=False):
        """NeighbourScores (m,) of rows embeddings (m, D)."""
        return NeighbourScores(self.evidence(embeddings, without_self)[1].mean(axis=1), self.version)

    def _unit(self, embeddings):
        rows = unit_rows(embeddings)
        require_width("embeddings", rows, "the reference holds", self._rows.shape[1])
        return rows
