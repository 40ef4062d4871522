"""Finding the closest texts: by words (BM25), by vectors (exact cosine), and by both together.

Every index answers a query with one score per corpus entry, so that ranking (`top_k`), mixing (`fuse`) and
measuring (`nano_simcse.evaluation`) see plain arrays and do not care where the scores came from.
Letters: n corpus entries, q queries, D width. All scores are "larger is closer".
"""

import logging
import re
from collections.abc import Sequence

import bm25s
import numpy as np
from bm25s.stopwords import STOPWORDS_EN

from .errors import InputError
from .inputs import is_whole, require_width, unit_rows

# bm25s sets its own logger to DEBUG, which would print through any handler the caller has installed.
logging.getLogger("bm25s").setLevel(logging.WARNING)

EQUAL_WEIGHT = 0.5  # weight of the dense scores in a search
_STOPWORDS = frozenset(STOPWORDS_EN)
# The endings of contractions and possessives (it's, don't) are not words.
_WORD = re.compile(r"([^\W_]+)(?:['\u2019](?:s|t|re|ve|ll|d|m)\b)?")
# A hump starts after two lower-case letters or digits (Num|Py, NaN) or after an acronym (HTTP|Server, GPUs).
_HUMP = re.compile(r"(?<=[a-z0-9]{2})(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")


def lexical_words(text):
    """The index words of an English text, lower-cased, in order; used for corpus and queries alike.

    A word is a run of letters and digits, so dots, underscores and hyphens separate and `numpy.linalg.svd`
    is found by "svd". A camelCase word gives its humps and itself: `LinearOperator` -> linear, operator,
    linearoperator; either spelling in a query finds it. The 33 English function words of the Lucene list are
    dropped; other single letters stay (C order, t test, k-means). No stemming: "ordered" does not find "order".

    Args: text (str). Returns: list[str], possibly empty. Raises: InputError if text is not a string.
    """
    if not isinstance(text, str):
        raise InputError(f"a text to search with or in must be a string, got {type(text).__name__}.")
    words = []
    for run in _WORD.findall(text):
        humps = _HUMP.split(run)
        words += [part.lower() for part in humps]
        if len(humps) > 1:
            words.append(run.lower())
    return [word for word in words if word not in _STOPWORDS]


class LexicalIndex:
    """BM25 over a list of texts, in the form Lucene computes it, with bm25s doing the sparse sums.

        score(query, d) = sum over query words w of  ln(1 + (n - n_w + 1/2) / (n_w + 1/2))
                                                     * f / (f + k1 (1 - b + b |d| / mean |d|))

    n_w counts the entries that contain w, f the occurrences of w in entry d, |d| the words of d (as
    `lexical_words` counts them); a word repeated in the query counts each time. Words that the corpus lacks
    add nothing, so a query of unknown words scores 0 everywhere.

    Args:
        texts: sequence of n >= 1 strings; an entry without any index word is allowed and always scores 0.
        k1: saturation of repeated words, >= 0.
        b: strength of the length correction, in [0, 1].
    Raises: InputError for an empty corpus, an entry that is not a string, or k1 and b out of range.
    Source: Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework"; the Lucene variant as in
    Kamphuis et al. 2020, "Which BM25 Do You Mean?".
    """

    def __init__(self, texts: Sequence[str], *, k1: float = 1.5, b: float = 0.75):
        if isinstance(texts, str):
            raise InputError("a lexical index needs a list of texts, got one string.")
        if not (np.isfinite(k1) and k1 >= 0):
            raise InputError(f"k1 must be a finite number >= 0, got {k1}.")
        if not 0 <= b <= 1:
            raise InputError(f"b must lie in [0, 1], got {b}.")
        self._vocabulary: dict[str, int] = {}
        # Numbering the words in order of appearance keeps the index the same under every PYTHONHASHSEED.
        ids = [[self._vocabulary.setdefault(word, len(self._vocabulary)) for word in lexical_words(text)]
               for text in texts]
        if not ids:
            raise InputError("the corpus is empty: a lexical index needs at least one text.")
        self._count = len(ids)
        self._bm25 = None
        if self._vocabulary:
            self._bm25 = bm25s.BM25(k1=k1, b=b, method="lucene")
            self._bm25.index((ids, dict(self._vocabulary)), show_progress=False)

    def __len__(self):
        """The number of corpus entries n."""
        return self._count

    def scores(self, query: str) -> np.ndarray:
        """BM25 of one query string against every entry: float32 (n,), all zeros if no query word is known."""
        known = [self._vocabulary[word] for word in lexical_words(query) if word in self._vocabulary]
        if not known:
            return np.zeros(self._count, np.float32)
        return self._bm25.get_scores_from_ids(known)

    def score_matrix(self, queries: Sequence[str]) -> np.ndarray:
        """BM25 of q query strings against every entry: float32 (q, n)."""
        if isinstance(queries, str):
            raise InputError("score_matrix needs a list of queries, got one string; use scores for one.")
        matrix = np.empty((len(queries), self._count), np.float32)
        for row, query in zip(matrix, queries, strict=True):
            row[:] = self.scores(query)
        return matrix

    def search(self, query: str, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """The k best entries of one query: (indices, scores), ordered as `top_k` orders."""
        scores = self.scores(query)
        best = top_k(scores, k)
        return best, scores[best]


class DenseIndex:
    """Exact cosine search: every query is compared with every row.

    Rows are scaled to unit length once. Equal rows are stored once too, which makes their scores equal to the
    bit (a matrix product alone may round them differently) and their order the order of the corpus.

    Args: embeddings (n, D), n >= 1, float32 or float64 (others become float32); not modified.
    Raises: InputError for a wrong shape, an empty corpus, a NaN or infinity, or a zero row (its cosine is
    undefined), naming the row.
    """

    def __init__(self, embeddings: np.ndarray):
        unit = unit_rows(embeddings, "embeddings")
        if not len(unit):
            raise InputError("the corpus is empty: a dense index needs at least one embedding.")
        unit += 0.0  # -0.0 becomes 0.0: equal numbers, but other bytes
        slots: dict[bytes, int] = {}
        self._slot = np.array([slots.setdefault(row.tobytes(), len(slots)) for row in unit])
        _, first = np.unique(self._slot, return_index=True)
        self._distinct = unit[first]

    def __len__(self):
        """The number of corpus entries n."""
        return len(self._slot)

    def scores(self, query: np.ndarray) -> np.ndarray:
        """Cosine of one query (D,) with every row: (n,)."""
        query = np.asarray(query)
        if query.ndim != 1:
            raise InputError(f"a query must have shape (D,), got {query.shape}; score_matrix takes several.")
        return self.score_matrix(query[None])[0]

    def score_matrix(self, queries: np.ndarray) -> np.ndarray:
        """Cosine of q queries (q, D) with every row: (q, n)."""
        queries = unit_rows(queries, "queries")
        require_width("queries", queries, "the index holds", self._distinct.shape[1])
        return (queries @ self._distinct.T)[:, self._slot]

    def search(self, query: np.ndarray, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """The k best rows for one query (D,): (indices, cosines), ordered as `top_k` orders."""
        scores = self.scores(query)
        best = top_k(scores, k)
        return best, scores[best]


def standardise(scores: np.ndarray) -> np.ndarray:
    """(s - mean s) / std s over the corpus, for each query by itself.

    Args: scores (n,) or (q, n), finite, n >= 1.
    Returns: the same shape and float dtype; mean 0 and (population) standard deviation 1 in each row. A row
    that prefers nothing becomes zeros: one whose spread is within rounding, 32 eps of its dtype times its
    largest magnitude. Scaled up to unit variance, rounding errors would look like an opinion.
    Raises: InputError for another number of dimensions, an empty corpus, or a NaN or infinity.
    """
    scores = _score_array(scores, "scores")
    if not np.isfinite(scores).all():
        raise InputError("scores must be finite to be standardised, got a NaN or infinity.")
    wide = scores.astype(np.float64)
    flat = np.ptp(wide, axis=-1) <= 32 * np.finfo(scores.dtype).eps * np.abs(wide).max(axis=-1)
    centred = wide - wide.mean(axis=-1, keepdims=True)
    spread = np.where(flat, 1.0, centred.std(axis=-1))[..., None]
    return np.where(flat[..., None], 0.0, centred / spread).astype(scores.dtype)


def fuse(dense: np.ndarray, lexical: np.ndarray, weight: float = EQUAL_WEIGHT) -> np.ndarray:
    """weight * standardise(dense) + (1 - weight) * standardise(lexical).

    BM25 has no fixed scale and cosines crowd into a narrow band, so both are put on the scale of their own
    spread over the corpus before they are added. Adding reciprocal ranks instead forgets how far ahead the
    first one is, which is what an exact word match has to say, and measured worse: it is not offered.

    Args: dense, lexical (n,) or (q, n), same shape, finite; weight of the dense side in [0, 1].
    Returns: fused scores of the same shape.
    Raises: InputError for different shapes, a weight outside [0, 1], or whatever `standardise` refuses.
    """
    if np.shape(dense) != np.shape(lexical):
        raise InputError(f"dense {np.shape(dense)} and lexical scores {np.shape(lexical)} differ in shape.")
    if not 0 <= weight <= 1:
        raise InputError(f"weight of the dense scores must lie in [0, 1], got {weight}.")
    return weight * standardise(dense) + (1 - weight) * standardise(lexical)


def top_k(scores: np.ndarray, k: int) -> np.ndarray:
    """Indices of the k largest scores, best first; equal scores in order of their index.

    Args: scores (n,) or (q, n), n >= 1, NaN refused, infinities allowed (-inf is a way to exclude an entry);
    k >= 1, and k > n gives all n.
    Returns: int64 (min(k, n),) or (q, min(k, n)).
    Raises: InputError for an empty corpus, k < 1 or not an integer, or a NaN.
    """
    scores = _score_array(scores, "scores")
    if not is_whole(k, 1):
        raise InputError(f"k must be an integer >= 1, got {k!r}.")
    if np.isnan(scores).any():
        raise InputError("scores hold a NaN, which has no place in an order.")
    return np.argsort(-scores, axis=-1, kind="stable")[..., :k]


def _score_array(scores, name):
    """scores as a float array of one or two dimensions with a nonempty last axis, or InputError."""
    scores = np.asarray(scores)
    if scores.dtype.kind not in "fiub":
        raise InputError(f"{name} must be real numbers, got dtype {scores.dtype}.")
    if scores.ndim not in (1, 2):
        raise InputError(f"{name} must have shape (n,) or (q, n), got {scores.shape}.")
    if scores.shape[-1] == 0:
        raise InputError(f"{name} cover no corpus entry: the corpus is empty.")
    # Integers go to float64: negating an unsigned or boolean score to sort it would wrap around.
    return scores if scores.dtype.kind == "f" else scores.astype(np.float64)
