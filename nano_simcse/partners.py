"""Whose partner is whose: what each anchor of a file of pairs chooses from, and the rank its own partner gets.

A list of pairs is not yet a quiz with one right answer a question. Texts repeat: several anchors share a partner, an
anchor has several, or an anchor is the partner of another. The rules, wherever recall on pairs is measured:

    the candidates are distinct texts        a partner that two anchors share is no tie with itself
    another partner of the same anchor       is right too, and left out of this one's ranking
    the anchor's own text                    is nearest to itself under any encoder, and left out as well
"""

import numpy as np

from .evaluation import gold_ranks
from .inputs import unit_rows

_BLOCK_CELLS = 1 << 24  # scores held at once: 64 MB


class Partners:
    """The quiz that rows of pairs or triples make.

    rows: n >= 1 tuples of strings (anchor, partner) or (anchor, partner, hard negative).
    anchors: list of n strings; candidates: list of the m distinct partners and hard negatives, in order of appearance;
    own: int (n,), the number of each anchor's own partner among them.
    """

    def __init__(self, rows):
        number, partners = {}, {}
        for anchor, partner, *negatives in rows:
            for text in (partner, *negatives):
                number.setdefault(text, len(number))
            partners.setdefault(anchor, set()).add(number[partner])
        self.anchors, self.candidates = [row[0] for row in rows], list(number)
        self.own = np.array([number[row[1]] for row in rows])
        itself = [{number[anchor]} if anchor in number else set() for anchor in self.anchors]
        self._left_out = [
            sorted((partners[anchor] | same) - {own})
            for anchor, same, own in zip(self.anchors, itself, self.own.tolist(), strict=True)
        ]

    def ranks(self, scores, first=0, tolerance=0.0):
        """`gold_ranks` (b,) of the anchors from number `first` on, given their scores (b, m) with every candidate."""
        rows = slice(first, first + len(scores))
        if any(self._left_out[rows]):
            scores = np.array(scores)
            for row, columns in zip(scores, self._left_out[rows], strict=True):
                row[columns] = -np.inf
        return gold_ranks(scores, self.own[rows], tolerance=tolerance)

    def cosine_ranks(self, anchors, candidates):
        """The same by cosine, from embeddings of the anchors (n, D) and of the candidates (m, D).

        Cosines closer than 1e-6 (float64: 1e-12) are ties, so a collapsed encoder earns nothing from rounding noise.
        Raises InputError for a NaN, an infinity or a zero row.
        """
        anchors, candidates = unit_rows(anchors, "anchor embeddings"), unit_rows(candidates, "candidate embeddings")
        tolerance = 1e-12 if anchors.dtype == candidates.dtype == np.float64 else 1e-6
        step = max(1, _BLOCK_CELLS // len(candidates))
        ranks = [
            self.ranks(anchors[first : first + step] @ candidates.T, first, tolerance)
            for first in range(0, len(anchors), step)
        ]
        return np.concatenate(ranks)
