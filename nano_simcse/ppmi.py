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

from .parallel import Workers
from .progress import hidden
from .word2vec import noise_probabilities, window_pairs

WINDOW = 10  # places to either side
SMOOTHING = 0.75
TOGETHER = 1 << 18  # tokens counted at a time
DENSE = 1000  # words up to which the decomposition is that of a full matrix
SPARE, ITERATIONS = 16, 8  # columns beside those wanted, and multiplications by M M^T, of one that is not full


def cooccurrences(rows, size, window=WINDOW, progress=None):
    """n(w, c) as a sparse matrix (size, size), float64, symmetric.

    rows: arrays of token numbers in [0, size), one array a text; window: places, at least 1;
    progress: True for a bar, False for none, None for a bar on a terminal.
    """
    from scipy.sparse import csr_array  # at first use: scipy takes longer to import than this package

    counts = csr_array((size, size))
    with tqdm(total=len(rows), desc="count words", unit="text", disable=hidden(progress), leave=False) as bar:
        for some in _portions(rows):
            pairs = window_pairs(some, window)
            counts += csr_array((np.ones(len(pairs[0])), pairs), (size, size))
            bar.update(len(some))
    return counts


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
    if not counts.nnz:
        return csr_array(counts.shape)
    total = np.bincount(counts.row, counts.data, counts.shape[0])  # n(w)
    pmi = np.log(counts.data / (total[counts.row] * noise_probabilities(total, smoothing)[counts.col]))
    above = pmi > 0
    return csr_array((pmi[above], (counts.row[above], counts.col[above])), counts.shape)


def ppmi_vectors(association, width, progress=None):
    """(words (n,), vectors (n, d)): the words that are associated with any, in order, and U S^(1/2) of their rows.

    association (V, V) sparse; d is `width`, or fewer where the matrix has fewer singular values above rounding. A
    column's sign is that of its entry of largest size, made positive. progress: as for `cooccurrences`.
    """
    words = np.flatnonzero(np.diff(association.indptr))
    if not len(words):
        return words, np.zeros((0, 0))
    rows = association[words][:, np.unique(association.indices)]
    with Workers(1):  # BLAS in one thread: the same bits whatever number of threads BLAS would take
        if min(rows.shape) <= max(DENSE, 2 * width):
            left, values, _ = np.linalg.svd(rows.toarray(), full_matrices=False)
        else:
            left, values = largest_singular(rows.astype(np.float32), width, progress=progress)
    left, values = left[:, :width], values[:width]
    kept = values > max(rows.shape) * np.finfo(values.dtype).eps * values.max()
    left, values = left[:, kept], values[kept]
    left *= np.sign(left[np.abs(left).argmax(axis=0), np.arange(len(values))])
    return words, left * np.sqrt(values)


def largest_singular(matrix, count, iterations=ITERATIONS, progress=None):
    """(U (n, c), S (c,)) of the c = count + SPARE largest singular values of a sparse matrix (n, m), largest first.

    Subspace iteration: c random columns are multiplied by M M^T again and again, and made orthogonal in between. A
    direction grows by the square of its singular value each time, so the largest remain; where the values near the
    last one are alike, which of their directions remain is open. ARPACK finds each to the last digit, but where values
    repeat it begins again from random vectors of its own, and the same matrix gets other bits the next time.

    Source: Halko, Martinsson and Tropp, SIAM Review 53 (2011), algorithms 4.4 and 5.1.
    """
    back = matrix.T.tocsr()
    start = np.random.default_rng(0).standard_normal((matrix.shape[1], count + SPARE), dtype=matrix.dtype)
    basis, _ = np.linalg.qr(matrix @ start)
    for _ in tqdm(range(iterations), desc="decompose", disable=hidden(progress), leave=False):
        other, _ = np.linalg.qr(back @ basis)
        basis, _ = np.linalg.qr(matrix @ other)
    small, values, _ = np.linalg.svd((back @ basis).T, full_matrices=False)
    return basis @ small, values
