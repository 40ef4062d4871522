"""Where the negatives come from: samplers, each with a name and one method.

A loss over sampled candidates is defined by its sampler as much as by its formula, so the sampler is an object that can
be named in a log, swapped and tested. Anything with these two members is one:

    name                              str, for reports
    candidates(embeddings, anchor)    row numbers (K,) that serve as negatives of row `anchor`; a row named m times
                                      counts m times

A sampler that draws from a distribution says so by `probabilities` (n,), and the loss can then correct for it (log q).
Random draws come from a numpy Generator that is handed in.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from .errors import InputError
from .inputs import is_whole
from .losses.candidate_info_nce import pair_mask


@runtime_checkable
class NegativeSampler(Protocol):
    """What the objective asks of a sampler; see the head of this file."""

    @property
    def name(self) -> str:
        """For reports."""

    def candidates(self, embeddings: np.ndarray, anchor: int) -> np.ndarray:
        """Rows of `embeddings` (n, D) that are negatives of row `anchor`: integers (K,), never `anchor` itself."""


class InBatchSampler:
    """Every other row of the batch, except those known to mean the same.

    duplicates: pairs (i, j) of rows; each removes j from the negatives of i and i from those of j.

    >>> sampler = InBatchSampler([(0, 1)])
    >>> [len(sampler.candidates(np.zeros((20, 4)), i)) for i in range(3)]
    [18, 18, 19]
    """

    name = "in-batch"

    def __init__(self, duplicates: Sequence[tuple[int, int]] = ()):
        self.duplicates = tuple(duplicates)

    def candidates(self, embeddings, anchor):
        """Raises InputError for a pair outside the batch or of a row with itself."""
        return np.flatnonzero(_others(len(embeddings), anchor, self.duplicates))


class UniformSampler:
    """`count` other rows, drawn uniformly without replacement (all of them where there are fewer).

    duplicates as for InBatchSampler.
    """

    def __init__(self, count: int, rng: np.random.Generator, duplicates=()):
        self.count, self.rng, self.duplicates = _count(count), rng, tuple(duplicates)
        self.name = f"uniform({count})"

    def candidates(self, embeddings, anchor):
        """Sorted row numbers (min(count, others),)."""
        pool = np.flatnonzero(_others(len(embeddings), anchor, self.duplicates))
        return np.sort(self.rng.choice(pool, min(self.count, len(pool)), replace=False))


class MinedSampler:
    """`count` negatives of which at most the share `cap` was chosen for being hard; the rest is drawn uniformly.

    The cap is a share of the set that is RETURNED. Hard negatives are the closest wrong answers, and the closest of
    all are often right answers that nobody marked; the cap bounds how much of the loss they can have.

    hard: for each row of the batch its mined rows, hardest first ((n, k) from `mining.hardest` with -1 as padding, or
    a list of lists); repeated rows, the row itself and known duplicates are skipped. The uniform part may draw a mined
    row too, as chance has it.
    Raises InputError for a cap outside [0, 1] or a mined row outside the batch.
    """

    def __init__(self, hard, count: int, rng: np.random.Generator, cap: float = 0.5, duplicates=()):
        if not 0 <= cap <= 1:
            raise InputError(f"cap is {cap}; expected a share in [0, 1]")
        self.hard, self.count, self.rng, self.cap = hard, _count(count), rng, cap
        self.duplicates = tuple(duplicates)
        self.name = f"mined({count}, at most {cap:.0%} hard)"

    def candidates(self, embeddings, anchor):
        """Row numbers (min(count, others),), the mined ones first, hardest first."""
        allowed = _others(len(embeddings), anchor, self.duplicates)
        size = min(self.count, int(allowed.sum()))
        chosen = []
        for row in self._mined(len(embeddings), anchor):
            if len(chosen) + 1 > self.cap * size + 1e-9:
                break
            if allowed[row]:
                allowed[row] = False  # so that no row comes twice, here or below
                chosen.append(row)
        fill = self.rng.choice(np.flatnonzero(allowed), size - len(chosen), replace=False)
        return np.concatenate([np.array(chosen, dtype=np.int64), fill])

    def _mined(self, n, anchor):
        if anchor >= len(self.hard):
            raise InputError(f"row {anchor} has no list of mined rows; there are {len(self.hard)} lists")
        mined = [int(row) for row in self.hard[anchor] if row != -1]
        outside = [row for row in mined if not 0 <= row < n]
        if outside:
            raise InputError(f"mined row {outside[0]} of anchor {anchor} lies outside 0 to {n - 1}")
        return mined


class PopularitySampler:
    """`count` rows drawn with replacement, row j with probability q_j = c_j^power / sum_k c_k^power.

    counts c (n,) > 0: how often each row (item, word) occurs. power 1 samples by popularity, 0 uniformly, 0.75 is the
    choice of word2vec. A draw of the anchor itself is dropped, so a set may be smaller than `count`.
    `probabilities` (n,) is q, which a loss needs for the log q correction.
    Source of 0.75: Mikolov et al., arXiv 1310.4546.
    """

    def __init__(self, counts, count: int, rng: np.random.Generator, power: float = 1.0):
        counts = np.asarray(counts, dtype=np.float64)
        if counts.ndim != 1 or not len(counts) or not (np.isfinite(counts) & (counts > 0)).all():
            raise InputError("counts must be a list of finite numbers above 0, one per row")
        if not np.isfinite(power):
            raise InputError(f"power is {power}; expected a finite number")
        logs = power * np.log(counts)
        weights = np.exp(logs - logs.max())
        self.probabilities = weights / weights.sum()
        self.count, self.rng = _count(count), rng
        self.name = f"popularity^{power:g}({count})"

    def candidates(self, embeddings, anchor):
        """Row numbers (K,), K <= count, repeats allowed. Raises InputError unless there is one count per row."""
        if len(embeddings) != len(self.probabilities):
            raise InputError(f"the sampler has {len(self.probabilities)} counts, the batch {len(embeddings)} rows")
        _others(len(embeddings), anchor, ())
        drawn = self.rng.choice(len(self.probabilities), self.count, p=self.probabilities)
        return drawn[drawn != anchor]


def _others(n, anchor, duplicates):
    """bool (n,): rows that are not the anchor and not known to mean the same."""
    if not 0 <= anchor < n:
        raise InputError(f"anchor {anchor} lies outside 0 to {n - 1}")
    allowed = ~pair_mask(duplicates, n)[anchor]
    allowed[anchor] = False
    return allowed


def _count(count):
    if not is_whole(count, 1):
        raise InputError(f"count is {count!r}; expected an integer >= 1")
    return int(count)
