"""How good are the embeddings: agreement with human similarity scores (STS), and finding the right partner.

Letters: n rows or queries, m candidates, D width. `spearman` and `pearson` return correlations in [-1, 1];
reports give them times 100, as papers print them. Recall is in percent.
"""

import numpy as np
from scipy.stats import rankdata

from .errors import InputError
from .inputs import is_whole, unit_rows

_BLOCK_ROWS = 1024


def pearson(a, b):
    """sum (a - mean a)(b - mean b) / sqrt(sum (a - mean a)^2 sum (b - mean b)^2).

    Args: a, b (n,), finite, n >= 1. Computed in float64.
    Returns: float in [-1, 1], or nan when a or b is constant (a single value is), where the formula is 0 / 0.
    nan, and not an error, because a collapsed encoder scores every pair alike: a training run must be able to
    log that and go on, and nan is never larger than the best score so far. No warning is issued.
    Raises: InputError for different lengths, no value, or a NaN or infinity.
    """
    a, b = _vector(a, "a"), _vector(b, "b")
    if len(a) != len(b):
        raise InputError(f"a correlation needs two lists of one length, got {len(a)} and {len(b)} values.")
    # Compared before centring: the mean of equal numbers may be off by one rounding, and 0 / 0 become +-1.
    if a.min() == a.max() or b.min() == b.max():
        return float("nan")
    a, b = _centred_unit(a), _centred_unit(b)
    return float(np.clip(a @ b, -1.0, 1.0))


def spearman(a, b):
    """Pearson correlation of the ranks; equal values share the average of the ranks they take up.

    Args, returns and errors as for `pearson`: nan when a or b is constant. Equals scipy.stats.spearmanr.
    Source: Spearman 1904. Ties matter for STS, whose human scores are averages over few judges.
    """
    return pearson(rankdata(_vector(a, "a")), rankdata(_vector(b, "b")))


def sts_scores(scores, gold, subsets=None):
    """Spearman and Pearson correlation x 100 of model scores with gold scores, under every protocol.

        all    one correlation over all rows together
        mean   the plain mean over the subsets of each subset's own correlation
        wmean  the same, weighted by the rows of each subset

    "all" is the default of the report and the setting of the SimCSE tables. No protocol is the stricter one:
    a score offset between subsets hurts "all" only, and disorder inside subsets that differ in level hurts
    the means more. Source: Gao et al. 2021, Appendix B.

    Args: scores, gold (n,); subsets: n labels, or None.
    Returns: {"count": n, "spearman", "pearson" (both of "all"), "all": {"spearman", "pearson"}} and, with
    subsets, "mean" and "wmean" likewise and "subsets": {label: {"count", "spearman", "pearson"}} in order of
    appearance. A subset without two different scores has no correlation: its value is nan, and so are "mean"
    and "wmean".
    Raises: InputError for different lengths, bad numbers, or gold scores that are all the same (a defect of
    the file, while constant model scores are a result: nan).
    """
    scores, gold = _vector(scores, "scores"), _vector(gold, "gold")
    if len(scores) != len(gold):
        raise InputError(f"there are {len(scores)} scores but {len(gold)} gold scores.")
    _check_gold(gold)
    together = _correlations(scores, gold)
    report = {"count": len(gold), **together, "all": together}
    if subsets is None:
        return report
    labels = list(subsets)
    if len(labels) != len(gold):
        raise InputError(f"there are {len(labels)} subset labels for {len(gold)} rows.")
    rows_of: dict = {}
    for row, label in enumerate(labels):
        rows_of.setdefault(label, []).append(row)
    parts = {label: {"count": len(rows), **_correlations(scores[rows], gold[rows])}
             for label, rows in rows_of.items()}
    counts = np.array([part["count"] for part in parts.values()])
    for protocol, weights in (("mean", np.ones(len(parts))), ("wmean", counts)):
        report[protocol] = {name: float(np.average([part[name] for part in parts.values()], weights=weights))
                            for name in together}
    report["subsets"] = parts
    return report


class Embedded:
    """Texts whose embeddings are known, where an encoder is expected: x (n, D), a row for each of n distinct texts."""

    def __init__(self, texts, x):
        self.x, self._row_of = np.asarray(x), {text: row for row, text in enumerate(texts)}
        if self.x.ndim != 2 or len(self.x) != len(self._row_of):
            raise InputError(f"the encoder returned shape {self.x.shape} for {len(self._row_of)} sentences.")

    def encode(self, sentences, **_):
        """The rows of `sentences`, all of them known; options of an encoder are ignored."""
        return self.x[[self._row_of[text] for text in sentences]]


def check_rated(pairs):
    """The pairs as a list, or InputError where `evaluate_sts` could not report on them, whatever the encoder: no
    pair, a subset on some of them only, or one score for all."""
    pairs = list(pairs)
    if not pairs:
        raise InputError("there is no sentence pair to evaluate.")
    unlabelled = sum(not pair.subset for pair in pairs)
    if 0 < unlabelled < len(pairs):
        raise InputError(f"{unlabelled} of {len(pairs)} pairs have no subset; label all of them or none.")
    _check_gold(_vector([pair.score for pair in pairs], "scores"))
    return pairs


def evaluate_sts(encoder, pairs, batch_size=64, show_progress_bar=None):
    """Encode the sentences of STS pairs, score each pair by its cosine, and report as `sts_scores` does.

    Args:
        encoder: has encode(list[str], batch_size=, show_progress_bar=) -> (number of sentences, D).
        pairs: objects with sentence1, sentence2, score, and subset (a label; empty or None in all or in none).
        batch_size, show_progress_bar: passed on.
    Returns: the dict of `sts_scores` plus "sentences", the number of distinct sentences, each encoded once.
    Cosines are compared to 12 decimals: float64 rounding must not rank pairs that the encoder scores alike.
    Raises: InputError as `check_rated`, before anything is encoded, and for embeddings of the wrong shape, a NaN,
    or a zero vector.
    """
    pairs = check_rated(pairs)
    row_of: dict[str, int] = {}
    left = np.array([row_of.setdefault(pair.sentence1, len(row_of)) for pair in pairs])
    right = np.array([row_of.setdefault(pair.sentence2, len(row_of)) for pair in pairs])
    embeddings = np.asarray(
        encoder.encode(list(row_of), batch_size=batch_size, show_progress_bar=show_progress_bar))
    if embeddings.ndim != 2 or len(embeddings) != len(row_of):
        raise InputError(f"the encoder returned shape {embeddings.shape} for {len(row_of)} sentences.")
    cosines = np.empty(len(pairs))
    for start in range(0, len(pairs), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        u = unit_rows(embeddings[left[block]], "embeddings of first sentences", np.float64)
        v = unit_rows(embeddings[right[block]], "embeddings of second sentences", np.float64)
        cosines[block] = np.einsum("nd,nd->n", u, v)
    subsets = [pair.subset for pair in pairs] if pairs[0].subset else None
    report = sts_scores(np.round(cosines, 12), [pair.score for pair in pairs], subsets)
    return {**report, "sentences": len(row_of)}


def gold_ranks(scores, gold, *, tolerance=0.0):
    """Rank of the right candidate among all, ties counted against it.

        rank_i = 1 + #{ j != gold_i : score_ij >= score_i,gold_i - tolerance }

    So an encoder that gives every candidate the same score ranks the right one last and earns nothing;
    sorting such ties by index would hand it whatever lies first.

    Args: scores (n, m), larger is closer, no NaN; gold (n,) integers in [0, m); tolerance >= 0 in units of
    the scores: differences up to it are ties (use the size of the rounding noise).
    Returns: int64 (n,), 1 is best, m is worst.
    Raises: InputError for wrong shapes, no query, a gold index out of range, a NaN, or a bad tolerance.
    """
    scores, gold = np.asarray(scores), np.asarray(gold)
    if scores.ndim != 2 or 0 in scores.shape or scores.dtype.kind not in "fiub":
        raise InputError(f"scores must be real numbers of shape (n, m), got {scores.dtype} {scores.shape}.")
    if gold.shape != scores.shape[:1] or gold.dtype.kind not in "iu":
        raise InputError(f"gold must be {len(scores)} integers, got {gold.dtype} of shape {gold.shape}.")
    if gold.min() < 0 or gold.max() >= scores.shape[1]:
        raise InputError(f"gold must lie in [0, {scores.shape[1]}), got {gold.min()} to {gold.max()}.")
    if not (np.isfinite(tolerance) and tolerance >= 0):
        raise InputError(f"tolerance must be a finite number >= 0, got {tolerance}.")
    if np.isnan(scores).any():
        raise InputError("scores hold a NaN, which has no rank.")
    bar = np.take_along_axis(scores, gold[:, None].astype(np.intp), axis=1).astype(np.float64) - tolerance
    return np.count_nonzero(scores >= bar, axis=1)  # the right candidate counts itself: the 1 of the formula


def recall_at_k(scores, gold, k=1, *, tolerance=0.0):
    """Percent of queries whose right candidate is among the k best, ties counted against it (`gold_ranks`).

    Args: scores (n, m); gold (n,) integers in [0, m); k >= 1; tolerance as for `gold_ranks`.
    Returns: float in [0, 100]; chance is 100 k / m. Raises: InputError as `gold_ranks`, or for k < 1.
    """
    if not is_whole(k, 1):
        raise InputError(f"k must be an integer >= 1, got {k!r}.")
    return float(100.0 * np.mean(gold_ranks(scores, gold, tolerance=tolerance) <= k))


def rank_report(ranks):
    """{"count", "recall_at_1", "recall_at_5", "recall_at_10" (percent), "mean_reciprocal_rank" (0 to 1)}.

    Args: ranks (n,) from `gold_ranks`, n >= 1. Raises: InputError for a rank below 1 or no rank.
    """
    ranks = _vector(ranks, "ranks")
    if ranks.min() < 1:
        raise InputError(f"ranks start at 1, got {ranks.min():g}.")
    report = {"count": len(ranks)}
    for k in (1, 5, 10):
        report[f"recall_at_{k}"] = float(100.0 * np.mean(ranks <= k))
    report["mean_reciprocal_rank"] = float(np.mean(1.0 / ranks))
    return report


def paired_recall(query_embeddings, target_embeddings):
    """`rank_report` of finding target i from query i by cosine among all targets.

    Args: query_embeddings (n, D), target_embeddings (m, D), m >= n; targets beyond n are distractors. Rows
    are normalised here; the (n, m) matrix is formed a block of rows at a time. Cosines closer than 1e-6
    (float64: 1e-12) are ties, so a collapsed encoder earns nothing from rounding noise.
    Raises: InputError for wrong shapes, no query, a NaN or infinity, or a zero row.
    """
    queries = unit_rows(query_embeddings, "query embeddings")
    targets = unit_rows(target_embeddings, "target embeddings")
    if not 0 < len(queries) <= len(targets) or queries.shape[1] != targets.shape[1]:
        raise InputError(f"queries (n, D) need targets (m, D) with m >= n >= 1, "
                         f"got {queries.shape} and {targets.shape}.")
    tolerance = 1e-12 if queries.dtype == targets.dtype == np.float64 else 1e-6
    ranks = [gold_ranks(queries[start:start + _BLOCK_ROWS] @ targets.T,
                        np.arange(start, min(start + _BLOCK_ROWS, len(queries))), tolerance=tolerance)
             for start in range(0, len(queries), _BLOCK_ROWS)]
    return rank_report(np.concatenate(ranks))


def binomial_error(percent, n):
    """Standard error of a percentage counted over n independent queries, in percent points.

        100 sqrt(p (1 - p) / n)   with p = percent / 100

    Two systems on the same queries differ by less noise than two such errors suggest: their hits are paired.
    Raises: InputError for percent outside [0, 100] or n < 1.
    """
    if not 0 <= percent <= 100:
        raise InputError(f"percent must lie in [0, 100], got {percent}.")
    if not is_whole(n, 1):
        raise InputError(f"n must be an integer >= 1, got {n!r}.")
    p = percent / 100
    return float(100 * np.sqrt(p * (1 - p) / n))


def _check_gold(gold):
    if gold.min() == gold.max():
        raise InputError(f"all {len(gold)} gold scores are {gold[0]:g}; a correlation needs two values.")


def _correlations(scores, gold):
    return {"spearman": 100 * spearman(scores, gold), "pearson": 100 * pearson(scores, gold)}


def _centred_unit(a):
    """(a - mean) / |a - mean|, scaled first so that no sum and no square leaves the range of float64."""
    a = np.ldexp(a, -np.frexp(np.abs(a).max())[1])  # by a power of two, which rounds nothing
    a = a - a.mean()
    a -= a.mean()  # the mean of nearly equal numbers is rounded, by as much as they differ
    a /= np.abs(a).max()
    return a / np.linalg.norm(a)


def _vector(values, name):
    """values as a float64 vector of at least one finite number, or InputError."""
    try:
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a list of numbers: {error}.") from error
    if vector.ndim != 1 or not len(vector):
        raise InputError(f"{name} must be a list of at least one number, got shape {vector.shape}.")
    bad = np.flatnonzero(~np.isfinite(vector))
    if len(bad):
        raise InputError(f"{name} must be finite, got {vector[bad[0]]} at position {bad[0]}.")
    return vector
