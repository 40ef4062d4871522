"""CLIP loss: the matrix of logits read by rows and by columns, with a scale that is learned.

A row looks for the key of its query, a column for the query of its key; the loss is the mean of both InfoNCE losses.
The temperature is no setting but a parameter a with 1 / tau = e^a, which keeps it positive.

Forward      c_ij = cos(q_i, k_j)
             z_ij = s c_ij                        s = min(e^a, max_scale)
             P = softmax over each row of z, R = softmax over each column of z
             loss = -(1 / 2N) sum_i (log P_ii + log R_ii)

Backward     dL/dz_ij = (P_ij + R_ij - 2 [i = j]) / 2N
             dL/dc_ij = s dL/dz_ij                then through c = q^ k^T and the Jacobian of the normalisation
             dz_ij/da = z_ij                      so dL/da = sum_ij dL/dz_ij z_ij, and 0 where the scale is clipped

             Since a row of P sums to 1, dL/da is the mean over rows and columns of (average logit under the softmax)
             - (logit of the positive). It is 0 where the two agree, and negative, so that training sharpens, in every
             batch whose positives all win.

At a = log max_scale itself the gradient passes: a parameter that is clamped to log max_scale after each step, as CLIP
does it, can leave the ceiling again. One that has run beyond it gets gradient 0 for good.

Source: Radford et al., arXiv 2103.00020, Section 2.3 and Figure 3 (start at tau = 0.07, scale at most 100).
"""

from ..layers.normalize import normalize
from .info_nce import row_loss
from .learned_scale import check_pairs, clipped_scale


def clip_loss(queries, keys, log_scale, *, max_scale=100.0):
    """Mean of the row and the column InfoNCE loss of N pairs at a learned scale, and its gradients.

    queries, keys      (N, D), not normalised; row i of each belong together
    log_scale          0-d array or float, a = -log tau (2.659 is tau = 0.07)
    max_scale          ceiling of the scale e^a (100 is tau = 0.01; math.inf for none)

    Returns (loss, backward): loss a 0-d array; backward() -> (dqueries, dkeys, dlog_scale), the last one 0-d.
    Raises InputError for arrays that are not of floats, shapes that do not fit, a log_scale that is not one finite
    number, a max_scale that is not above 0, a scale that overflows, or a zero row.

    >>> import numpy as np
    >>> u = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> loss, backward = clip_loss(u, u, 0.0)
    >>> round(float(loss), 6)                 # log(1 + exp(-1)) in both rows and both columns
    0.313262
    """
    check_pairs(queries, keys)
    scale, passes = clipped_scale(queries, log_scale, max_scale)
    q, q_back = normalize(queries)
    k, k_back = normalize(keys)
    z = scale * (q @ k.T)

    loss, dz = row_loss(z, 1.0, None, 0.0)
    column_loss, dcolumns = row_loss(z.T, 1.0, None, 0.0)
    half = z.dtype.type(0.5)
    loss = (loss + column_loss) * half
    dz += dcolumns.T
    dz *= half

    def backward():
        dc = scale * dz
        return q_back(dc @ k), k_back(dc.T @ q), passes * (dz * z).sum()

    return loss, backward
