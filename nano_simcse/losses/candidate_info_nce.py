"""InfoNCE over a named set of candidates: the set is part of the loss, so it has a name.

Two views of B rows, anchors a and positives p, offer an anchor three sets of negatives besides its own positive p_i:

    "cross"      the other positives p_j                       B - 1 negatives
    "same-view"  the other anchors a_j                         B - 1 negatives
    "both"       both of them                                  2B - 2 negatives

and each may be extended by a queue of Q older rows, which are constants: +Q negatives, no gradient.

Forward      s_ij = cos(a_i, c_j)                  candidates c: B positives, then B anchors, then Q queue rows
             z_ij = s_ij / tau + w_ij              w: log weights; -inf removes a candidate
             loss = mean_i -log softmax(z_i)_i     the positive of row i stands in column i

Log weights  A candidate drawn m times counts as m candidates: w = log m. One drawn from a distribution q that is not
             uniform is corrected by w = -log q (on the positive too): the best critic of the corrected loss is
             log p(j|i), that of the plain loss log p(j|i) / q(j) (chapter 15).

Backward     g_ij = dL/ds_ij = (p_ij - [i = j]) / (B tau), p the softmax; w is constant. With g = [g1 g2 g3] by block,

             da^ = g1 p^ + g2 a^ + g2^T a^ + g3 queue      g2^T a^: the anchors are candidates too
             dp^ = g1^T a^
             then the Jacobians of the two normalisations.

Sources: van den Oord et al., arXiv 1807.03748; the queue: He et al., arXiv 1911.05722; log q: Bengio and Senecal,
IEEE TNN 2008, and Yi et al., RecSys 2019.
"""

import numpy as np

from ..arrays import require_floats
from ..backend import array_module, on_host
from ..errors import InputError
from ..layers.normalize import normalize
from .info_nce import check_temperature, queue_rows, row_loss

CANDIDATE_SETS = ("cross", "same-view", "both")


def candidate_info_nce(anchors, positives, temperature, *, candidates="cross", log_weights=None, queue=None):
    """Mean InfoNCE loss of B anchors over a named candidate set, and its gradients.

    anchors, positives   (B, D), not normalised; row i of each belong together
    temperature          tau > 0
    candidates           "cross", "same-view" or "both"
    log_weights          (B, 2B + Q), added to the logits by column [positives | anchors | queue]; -inf removes a
                         candidate; columns outside the set are ignored (an anchor is never its own candidate)
    queue                (Q, D) rows of earlier steps, not normalised, treated as constants; None or Q = 0 for none

    Returns (loss, backward): loss a 0-d array; backward() -> (danchors, dpositives).
    Raises InputError for arrays that are not of floats, shapes that do not fit, an unknown set, log weights that are
    NaN or +inf or remove a positive, or a zero row; DegenerateTemperature for a temperature that is not finite and
    positive or so small that a logit overflows.

    >>> u = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> round(float(candidate_info_nce(u, u, 1.0, candidates="both")[0]), 6)      # log(1 + 2 exp(-1)) in both rows
    0.551445
    """
    n, extra = _validate(anchors, positives, temperature, candidates, log_weights, queue)
    xp = array_module(anchors)
    a, a_back = normalize(anchors)
    p, p_back = normalize(positives)
    columns = [p, a] if extra == 0 else [p, a, normalize(queue)[0]]
    c = xp.concatenate(columns)
    similarity = a @ c.T
    exclude = removed(n, extra, candidates, xp)
    logits = similarity
    if log_weights is not None:
        exclude |= log_weights == -np.inf
        logits = similarity + xp.where(exclude, 0, log_weights * temperature).astype(similarity.dtype)
    loss, g = row_loss(logits, temperature, exclude, 0.0)

    def backward():
        da = g @ c + g[:, n : 2 * n].T @ a
        return a_back(da), p_back(g[:, :n].T @ a)

    return loss, backward


def removed(n, extra, candidates, xp=np):
    """bool (n, 2n + extra): the columns [positives | anchors | queue] that are not in the candidate set."""
    out = xp.zeros((n, 2 * n + extra), dtype=bool)
    out[:, n : 2 * n] = xp.eye(n, dtype=bool)
    if candidates == "cross":
        out[:, n : 2 * n] = True
    elif candidates == "same-view":
        out[:, :n] = ~xp.eye(n, dtype=bool)
    return out


def pair_mask(pairs, n):
    """bool (n, n), symmetric, True at every pair of rows known to mean the same.

    pairs: sequence of (i, j), i != j. Raises InputError for a row outside [0, n) or a pair (i, i), whose removal
    would take the positive itself.

    >>> pair_mask([(0, 2)], 3).astype(int)
    array([[0, 0, 1],
           [0, 0, 0],
           [1, 0, 0]])
    """
    mask = np.zeros((n, n), dtype=bool)
    for i, j in pairs:
        if not (0 <= i < n and 0 <= j < n):
            raise InputError(f"pair ({i}, {j}) names a row outside 0 to {n - 1}")
        if i == j:
            raise InputError(f"pair ({i}, {j}) would remove the positive of row {i}; a pair needs two rows")
        mask[i, j] = mask[j, i] = True
    return mask


def pair_log_weights(pairs, n, extra=0):
    """(n, 2n + extra) log weights: -inf where a pair removes a candidate, in both blocks, else 0."""
    out = np.zeros((n, 2 * n + extra))
    out[:, : 2 * n][np.tile(pair_mask(pairs, n), 2)] = -np.inf
    return out


def check_views(anchors, positives, candidates):
    """Raise InputError unless anchors and positives are two float arrays (B, D) and the set has a name."""
    require_floats(anchors=anchors, positives=positives)
    if anchors.ndim != 2 or anchors.shape != positives.shape or anchors.shape[0] == 0:
        raise InputError(f"anchors {anchors.shape} and positives {positives.shape} must be two (B, D) arrays, B >= 1")
    if candidates not in CANDIDATE_SETS:
        raise InputError(f"candidate set {candidates!r} is not one of {', '.join(CANDIDATE_SETS)}")


def _validate(anchors, positives, temperature, candidates, log_weights, queue):
    check_views(anchors, positives, candidates)
    check_temperature(temperature, anchors.dtype)
    n, width = anchors.shape
    extra = 0 if queue is None else queue_rows(queue, width)
    if log_weights is None:
        return n, extra
    require_floats(log_weights=log_weights)
    if log_weights.shape != (n, 2 * n + extra):
        raise InputError(f"log_weights {log_weights.shape} must have one entry per candidate, ({n}, {2 * n + extra})")
    if on_host(log_weights):
        if np.isnan(log_weights).any() or (log_weights == np.inf).any():
            raise InputError("log_weights hold NaN or +inf; expected numbers below infinity")
        gone = log_weights.diagonal() == -np.inf
        if gone.any():
            raise InputError(f"log_weights remove the positive of row {int(gone.argmax())}; only negatives can go")
    return n, extra
