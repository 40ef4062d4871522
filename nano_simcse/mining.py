"""Hard negatives: the candidates that score highest although they are wrong, and a list of them for a person to read.

At a low temperature the loss already pushes hardest on its closest negatives, so a mined list is worth most as an
audit: what stands at its top is either the most useful negative or a right answer that nobody marked.
"""

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .data.records import expanded
from .errors import InputError
from .files import atomic_write
from .inputs import is_whole, unit_rows
from .losses.candidate_info_nce import check_views, pair_mask, removed

BLOCKS = ("positive", "anchor")


def hardest(scores, k, *, exclude=None, second_opinion=None, ceiling=None):
    """The k highest-scoring candidates of every row, best first, ties in order of their number.

    scores (q, n): larger is closer, from any retriever: cosines of the current encoder, BM25, both fused. NaN refused.
    exclude: bool (q, n), True at what must not be mined (the answer, passages that contain it, known duplicates).
    second_opinion, ceiling: scores (q, n) of a slower and better judge, such as a cross-encoder; a candidate that it
    scores above `ceiling` is probably a right answer and is dropped.

    Returns (rows (q, k') int64, scores (q, k')), k' = min(k, n). Where a row has fewer than k' candidates left, the
    rest is -1 with score -inf: nothing that was excluded ever comes back.
    Raises InputError for shapes that do not fit, k < 1, a NaN (in second_opinion too: it would pass for a low score),
    or one of second_opinion and ceiling alone.

    >>> hardest(np.array([[0.2, 0.9, 0.5]]), 2, exclude=np.array([[False, True, False]]))[0].tolist()
    [[2, 0]]
    """
    scores = np.asarray(scores)
    if scores.ndim != 2 or 0 in scores.shape or scores.dtype.kind not in "fiub":
        raise InputError(f"scores must be real numbers of shape (q, n), got {scores.dtype} {scores.shape}")
    if not is_whole(k, 1):
        raise InputError(f"k is {k!r}; expected an integer >= 1")
    if (second_opinion is None) != (ceiling is None):
        raise InputError("second_opinion and ceiling go together; got one of them")
    scores = scores.astype(np.float64)  # a copy
    masks = [] if exclude is None else [np.asarray(exclude, bool)]
    if second_opinion is not None:
        second_opinion = np.asarray(second_opinion, np.float64)
        if np.isnan(second_opinion).any() or np.isnan(ceiling).any():
            raise InputError("second_opinion or its ceiling holds a NaN, which is neither above nor below")
        masks.append(second_opinion > ceiling)
    for mask in masks:
        if mask.shape != scores.shape:
            raise InputError(f"a mask of shape {mask.shape} does not fit scores of shape {scores.shape}")
        scores[mask] = -np.inf
    if np.isnan(scores).any():
        raise InputError("scores hold a NaN, which has no place in an order")
    # a stable sort of everything: argpartition would be quicker and leave ties to chance
    rows = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    best = np.take_along_axis(scores, rows, axis=1)
    return np.where(best == -np.inf, -1, rows), best


@dataclass(frozen=True)
class Mined:
    """What `mine` found for every anchor, hardest first.

    columns  (B, k) int64: j < B is positive j, B + j is anchor j, -1 nothing left
    cosines  (B, k): -inf where nothing is left
    own      (B,): cosine of the anchor with its own positive
    """

    columns: np.ndarray
    cosines: np.ndarray
    own: np.ndarray

    def rows(self):
        """(B, k) row numbers in the batch whichever block they come from, -1 for nothing: what MinedSampler takes."""
        n = len(self.columns)
        return np.where(self.columns < 0, -1, self.columns % n)

    def suspects(self):
        """bool (B, k): mined candidates at least as close to the anchor as its own positive."""
        return self.cosines >= self.own[:, None]

    def export(self, path: str | os.PathLike, anchors: Sequence[str], positives: Sequence[str]):
        """Write the audit list to `path`, tab-separated, the most suspicious first; returns the number of lines.

        anchors, positives: the texts of the B rows. Columns: anchor row, its text, block, row, text of the candidate,
        cosine, lead over the own positive, and "?" for a suspect. The file is written whole or not at all.
        """
        n = len(self.columns)
        if len(anchors) != n or len(positives) != n:
            raise InputError(f"{n} rows were mined, but there are {len(anchors)} and {len(positives)} texts")
        lead = self.cosines - self.own[:, None]
        found = [(i, r) for i in range(n) for r in range(self.columns.shape[1]) if self.columns[i, r] >= 0]
        found.sort(key=lambda at: -lead[at])
        with atomic_write(expanded(path)) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n")
            writer.writerow(["anchor", "anchor text", "block", "row", "candidate text", "cosine", "lead", "suspect"])
            for i, r in found:
                block, row = divmod(int(self.columns[i, r]), n)
                text = (positives if block == 0 else anchors)[row]
                suspect = "?" if lead[i, r] >= 0 else ""
                numbers = f"{self.cosines[i, r]:.4f}", f"{lead[i, r]:+.4f}"
                writer.writerow([i, anchors[i], BLOCKS[block], row, text, *numbers, suspect])
        return len(found)


def mine(anchors, positives, k, *, candidates="both", duplicates=(), exclude=None):
    """The k hardest in-batch negatives of every anchor, over the candidate set of the loss.

    anchors, positives (B, D); candidates "cross", "same-view" or "both". Left out: the anchor itself, its positive,
    duplicates (pairs (i, j), in both blocks), and whatever exclude, bool (B, B), marks by row (overlapping windows of
    one series, passages of one document). Any k >= 1; fewer come back where fewer are left.
    Returns Mined. Raises InputError as the loss and `inputs.unit_rows` do, or for k < 1.
    """
    a, p = unit_rows(anchors, "anchors"), unit_rows(positives, "positives")
    check_views(a, p, candidates)
    n = len(a)
    cosines = np.concatenate([a @ p.T, a @ a.T], axis=1)
    gone = removed(n, 0, candidates)
    gone |= np.tile(np.eye(n, dtype=bool) | pair_mask(duplicates, n), 2)
    if exclude is not None:
        exclude = np.asarray(exclude, bool)
        if exclude.shape != (n, n):
            raise InputError(f"exclude {exclude.shape} must be ({n}, {n}), one entry per pair of rows")
        gone |= np.tile(exclude, 2)
    columns, best = hardest(cosines, k, exclude=gone)
    return Mined(columns, best, (a * p).sum(axis=1))
