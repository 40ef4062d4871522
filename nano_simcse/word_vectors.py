"""Asking a table of word vectors: who is near, by which measure, and does arithmetic lead anywhere.

Cosine compares directions; a dot product carries both lengths as factors, so under it a long vector climbs in every
list in which its cosine is positive, and sinks where it is negative.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .errors import InputError
from .inputs import members, unit_rows

MEASURES = ("cosine", "dot")


@dataclass(frozen=True)
class WordVectors:
    """V words and their vectors.

    words (V,), most frequent first; counts (V,); vectors (V, D), as trained, not normalised; contexts (V, D), the other
    table of the model; losses (steps,), one per batch.
    """

    words: Sequence[str]
    counts: np.ndarray
    vectors: np.ndarray
    contexts: np.ndarray | None = None
    losses: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @cached_property
    def index(self) -> dict[str, int]:
        """Word -> row."""
        return {word: i for i, word in enumerate(self.words)}

    @cached_property
    def unit(self) -> np.ndarray:
        """The vectors scaled to length 1 (V, D). Raises InputError for a zero row, a NaN or an infinity."""
        return unit_rows(self.vectors, "vectors")

    @cached_property
    def lengths(self) -> np.ndarray:
        """Euclidean length of every vector (V,)."""
        return np.linalg.norm(self.vectors, axis=1)

    def __contains__(self, word):
        return word in self.index

    def row(self, word: str) -> int:
        """Row of a word. Raises InputError for one that is not in the vocabulary, with the nearest spelling."""
        if word not in self.index:
            close = difflib.get_close_matches(word, self.words, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InputError(f"word {word!r} is not among the {len(self.words)} words{hint}")
        return self.index[word]

    def scores(self, word: str, measure: str = "cosine") -> np.ndarray:
        """Score of every word with `word` (V,): "cosine" or "dot". Raises InputError for another measure."""
        if measure not in MEASURES:
            raise InputError(f"measure {measure!r} is not one of {', '.join(MEASURES)}")
        table = self.unit if measure == "cosine" else self.vectors
        return table @ table[self.row(word)]

    def cosine(self, a: str, b: str) -> float:
        """Cosine of two words."""
        return float(self.unit[self.row(a)] @ self.unit[self.row(b)])

    def nearest(self, word: str, count: int = 6, measure: str = "cosine") -> list[tuple[str, float]]:
        """The `count` other words with the highest score, best first, ties in order of frequency."""
        return self._best(self.scores(word, measure), [word], count)

    def rank(self, a: str, b: str, measure: str = "cosine") -> int:
        """Place of b among the V - 1 neighbours of a, 1 the nearest, ties counted against it.

        Not symmetric: b may be first for a while many words are nearer to b than a is.
        """
        return self._rank(self.scores(a, measure), [a], b)

    def analogy_query(self, a: str, b: str, c: str) -> np.ndarray:
        """b - a + c on unit vectors, the direction in which "a is to b as c is to ?" is looked for (D,)."""
        unit = self.unit
        return unit[self.row(b)] - unit[self.row(a)] + unit[self.row(c)]

    def analogy(self, a: str, b: str, c: str, count: int = 1, exclude_question: bool = True) -> list[tuple[str, float]]:
        """Words nearest to b - a + c by cosine; without `exclude_question` b or c itself is usually the answer.

        Source: Mikolov et al., arXiv 1301.3781; what the exclusion hides, Linzen, arXiv 1606.07736.
        """
        return self._best(self._analogy_scores(a, b, c), [a, b, c] if exclude_question else [], count)

    def analogy_rank(self, a: str, b: str, c: str, d: str) -> int:
        """Place of d among the words other than a, b, c; a guess stands at (V - 3 + 1) / 2 on average."""
        return self._rank(self._analogy_scores(a, b, c), [a, b, c], d)

    def average(self, words: Sequence[str]) -> np.ndarray:
        """Mean vector of the words that are in the vocabulary (D,). Raises InputError when none of them is, and for one
        string in place of a list."""
        words = members("words", words, "a list of words")
        rows = [self.index[w] for w in words if w in self.index]
        if not rows:
            raise InputError(f"none of the {len(words)} words is among the {len(self.words)} words of the vocabulary")
        return self.vectors[rows].mean(axis=0)

    def _analogy_scores(self, a, b, c):
        query = self.analogy_query(a, b, c)
        return self.unit @ query / np.linalg.norm(query)

    def _best(self, scores, excluded, count):
        scores = scores.copy()
        scores[[self.row(w) for w in excluded]] = -np.inf
        order = np.argsort(-scores, kind="stable")[: max(0, min(count, len(scores) - len(set(excluded))))]
        return [(self.words[i], float(scores[i])) for i in order]

    def _rank(self, scores, excluded, wanted):
        if wanted in excluded:
            raise InputError(f"word {wanted!r} is part of the question, so it has no rank among the answers")
        others = np.ones(len(scores), bool)
        others[[self.row(w) for w in (*excluded, wanted)]] = False
        return 1 + int(np.count_nonzero(scores[others] >= scores[self.row(wanted)]))
