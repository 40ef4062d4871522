"""Sigmoid loss: every pair of the batch judged on its own, match or no match.

No softmax, so no sum over a row or a column: the loss is a plain sum over entries, which may be computed in any blocks
and added up. What the softmax did by itself a learned bias b must do: N - 1 of N entries of a row are no match.

Forward      c_ij = cos(q_i, k_j)
             z_ij = e^a c_ij + b                  a = log_scale
             y_ij = 1 if i = j else -1
             loss = (1 / N) sum_ij log(1 + exp(-y_ij z_ij))

Backward     dL/dz_ij = -y_ij sigmoid(-y_ij z_ij) / N
             dL/db    = sum_ij dL/dz_ij
             dL/da    = sum_ij dL/dz_ij e^a c_ij  since d(e^a c)/da = e^a c
             dL/dc_ij = e^a dL/dz_ij              then through c = q^ k^T and the Jacobian of the normalisation

Where the cosines say nothing (all equal), dL/db = 0 at b + e^a c = -log(N - 1): the log-odds of a match.

Source: Zhai et al., arXiv 2303.15343, Algorithm 1 (start at e^a = 10, b = -10).
"""

from ..backend import array_module
from ..layers.normalize import normalize
from .learned_scale import check_pairs, clipped_scale, one_number


def sigmoid_loss(queries, keys, log_scale, bias):
    """Sum over all N^2 pairs of the logistic loss, divided by N, and its gradients.

    queries, keys      (N, D), not normalised; row i of each belong together, all other pairs do not
    log_scale, bias    0-d arrays or floats, a and b of z = e^a cos + b

    Returns (loss, backward): loss a 0-d array; backward() -> (dqueries, dkeys, dlog_scale, dbias), the last two 0-d.
    Raises InputError for arrays that are not of floats, shapes that do not fit, a log_scale or bias that is not one
    finite number, a scale that overflows, or a zero row.

    >>> import numpy as np
    >>> u = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> loss, backward = sigmoid_loss(u, u, 0.0, 0.0)
    >>> round(float(loss), 6)                 # log(1 + e^-1) for the match of a row and log 2 for the other pair
    1.006409
    """
    check_pairs(queries, keys)
    xp, n = array_module(queries), queries.shape[0]
    scale, _ = clipped_scale(queries, log_scale)
    bias = one_number(queries, bias, "bias")
    q, q_back = normalize(queries)
    k, k_back = normalize(keys)
    logits = scale * (q @ k.T)
    number = logits.dtype.type

    match = xp.eye(n, dtype=bool)
    x = logits + bias
    x = xp.where(match, -x, x)  # -y z: above 0 where the pair is judged wrongly
    e = xp.exp(-xp.abs(x))
    loss = (xp.maximum(x, number(0)) + xp.log1p(e)).sum() * number(1 / n)

    dz = xp.where(x > 0, number(1), e) / (1 + e)  # sigmoid(x)
    dz = xp.where(match, -dz, dz)
    dz *= number(1 / n)

    def backward():
        dc = scale * dz
        return q_back(dc @ k), k_back(dc.T @ q), (dz * logits).sum(), dz.sum()

    return loss, backward
