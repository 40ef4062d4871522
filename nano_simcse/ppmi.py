"""Word vectors by counting: what an encoder without a checkpoint can begin with.

Counts       n(w, c)                                         times that tokens w and c stand at most `window` places
                                                             apart in a text; n(w) = sum_c n(w, c)
             q(c) = n(c)^(3/4) / sum_c' n(c')^(3/4)          the draw of word2vec's negatives

Association  PMI(w, c)  = ln(n(w, c) / (n(w) q(c)))          how much likelier c is beside w than anywhere
             PPMI(w, c) = max(0, PMI(w, c))                  0 for a pair that never was seen

Vectors      PPMI = U S V^T, cut to the D largest singular values;  vectors = U S^(1/2)

Skip-gram with k negatives climbs to the same place by small steps: its best score of a pair is PMI - ln k (chapter 13),
a product of two tables of D columns. Counting and one decomposition need seconds, and no learning rate.

Sources: Levy and Goldberg, NIPS 2014; Levy, Goldberg and Dagan, TACL 3 (2015), for the power 3/4 and the root of S.
"""

from itertools import pairwise

import numpy as np
from tqdm import tqdm

WINDOW = 10  # places to either side
SMOOTHING = 0.75
TOGETHER = 1 << 20  # tokens counted at a time
DENSE = 1000  # words up to which the decomposition is that of a full matrix


def cooccurrences(rows, size, window=WINDOW, progress=None):
    """n(w, c) as a sparse matrix (size, size), float64, symmetric.

    rows: arrays of token numbers in [0, size), one array a text; window: places, at least 1;
    progress: True for a bar, False for none, None for a bar on a terminal.
    """
    from scipy.sparse import csr_array  # at first use: scipy takes longer to import than this package

    counts = csr_array((size, size))
    hide = None if progress is None else not progress
    with tqdm(total=len(rows), desc="count words", unit="text", disable=hide, leave=False) as bar:
        for some in _portions(rows):
            tokens = np.concatenate(some)
            text = np.repeat(np.arange(len(some)), [len(row) for row in some])
            left, right = [], []
            for distance in range(1, min(window, len(tokens) - 1) + 1):
                within = text[distance:] == text[:-distance]
                left.append(tokens[:-distance][within])
                right.append(tokens[distance:][within])
            if left:
                pairs = np.concatenate(left), np.concatenate(right)
                counts += csr_array((np.ones(len(pairs[0])), pairs), (size, size))
            bar.update(len(some))
    return counts + counts.T


def _portions(rows):
    """Lists of rows of about TOGETHER tokens each."""
    ends = np.cumsum([len(row) for row in rows]) // TOGETHER
    cuts = np.flatnonzero(np.diff(ends)) + 1
    bounds = [0, *cuts, len(rows)]
    return [rows[a:b] for a, b in pairwise(bounds) if b > a]


def ppmi(counts, smoothing=SMOOTHING):
    """PPMI of symmetric counts (V, V), sparse, with no explicit zeros; smoothing: the power in q, 1 for none."""
    from scipy.sparse import csr_array

    counts = counts.tocoo()
    total = np.bincount(counts.row, counts.data, counts.shape[0])  # n(w)
    weight = total**smoothing
    pmi = np.log(counts.data / (total[counts.row] * (weight[counts.col] / weight.sum())))
    above = pmi > 0
    return csr_array((pmi[above], (counts.row[above], counts.col[above])), counts.shape)


def ppmi_vectors(association, width):
    """(words (n,), vectors (n, d)): the words that are associated with any, in order, and U S^(1/2) of their rows.

    association (V, V) sparse; d is `width`, or fewer where the matrix has fewer singular values above rounding. A
    column's sign is that of its entry of largest size, made positive.
    """
    words = np.flatnonzero(np.diff(association.indptr))
    if not len(words):
        return words, np.zeros((0, 0))
    rows = association[words][:, np.unique(association.indices)]
    smaller = min(rows.shape)
    if smaller <= max(DENSE, 2 * width):
        left, values, _ = np.linalg.svd(rows.toarray(), full_matrices=False)
    else:
        from scipy.sparse.linalg import svds

        start = np.random.default_rng(0).standard_normal(smaller)  # where the iteration begins: the same every time
        left, values, _ = svds(rows, k=width, v0=start)
    order = np.argsort(-values, kind="stable")[:width]
    order = order[values[order] > max(rows.shape) * np.finfo(values.dtype).eps * values.max()]
    left = left[:, order]
    left *= np.sign(left[np.abs(left).argmax(axis=0), np.arange(len(order))])
    return words, left * np.sqrt(values[order])
