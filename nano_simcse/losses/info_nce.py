"""InfoNCE: which of the N candidates belongs to this query?

Row i of the queries has its positive at row i of the keys; the other keys are its negatives, as are all hard
negatives, which stand after the keys, and the rows of a queue, which stand last and belong to no row.

Forward      s_ij = cos(q_i, c_j)                     candidates c: N keys, hard negatives, queue
             z_ij = s_ij / tau + w_ij                 w = log_weight on the row's own hard negatives, else 0
             d_ij = z_ij - z_ii                       for j != i
             loss = mean_i log(1 + sum_{j != i} exp d_ij)

             This is the softmax cross-entropy -log p_ii, written in differences so that a loss of 1e-16 keeps its
             digits: 1 + tiny would lose them, log1p does not.

Backward     p_ij = exp(d_ij) / (1 + sum_k exp d_ik)  the probability the row gives to candidate j
             dL/ds_ij = p_ij / (N tau)                push, for j != i
             dL/ds_ii = -sum_{j != i} p_ij / (N tau)  pull; equal to -(1 - p_ii) without the cancellation
             then through s = q^ c^T and the Jacobian of the normalisation; the queue is constant.

The plain form, `row_loss`, holds the N x C matrix of all C candidates; `info_nce_blocks` computes the same numbers
some rows at a time and takes over where the matrix is large.

Source: van den Oord et al., arXiv 1807.03748; as SimCSE uses it, Gao et al., arXiv 2104.08821, equations 1, 4, 5;
the weight on the own hard negative is their Section 6.3 (log_weight = log alpha).
"""

import math

import numpy as np

from ..arrays import require_booleans, require_floats
from ..backend import array_module, on_host
from ..errors import DegenerateTemperature, InputError
from ..inputs import is_whole
from ..layers.normalize import normalize
from .info_nce_blocks import BlockedLogits, both_ways, one_way, rows_per_block
from .log_one_plus import log_one_plus


def info_nce(
    queries,
    keys,
    temperature,
    *,
    hard_negatives=None,
    log_weight=0.0,
    exclude=None,
    symmetric=False,
    queue=None,
    blocks=None,
):
    """Mean InfoNCE loss of N queries and its gradients.

    queries, keys      (N, D), not normalised; row i of each belong together
    temperature        tau > 0 (1/scale: 0.05 is a scale of 20)
    hard_negatives     (N, D) or (N * k, D): rows i k ... i k + k - 1 belong to query i; every query sees all of them
    log_weight         added to the logits of a query's own hard negatives (log of the paper's alpha; 0 = plain)
    exclude            bool (N, candidates), True where a candidate must not count, for known duplicates
    symmetric          average of this loss and the one with keys as queries (hard negatives stay with the queries)
    queue              (Q, D) rows of earlier steps, not normalised: negatives of every query, without a gradient
    blocks             rows of the N x C matrix to hold at once: a number, 0 for the whole matrix, None to choose (the
                       whole matrix up to BLOCKS_ABOVE = 2^22 elements). Memory and time, not the result, depend on it
                       beyond rounding; in blocks the gradients are computed with the loss, not in backward

    Returns (loss, backward): loss a 0-d array; backward() -> (dqueries, dkeys[, dhard_negatives]).
    Raises InputError for arrays that are not of floats (exclude: of bool), shapes that do not fit, a temperature that
    is not finite and positive or so small that a logit overflows, a log_weight that is NaN or infinite or has no hard
    negatives to act on (-inf, which removes the row's own, is allowed), an excluded positive, a zero row, or `blocks`
    that is no whole number or negative.

    >>> u = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> loss, backward = info_nce(u, u, temperature=1.0)
    >>> round(float(loss), 6)             # log(1 + exp(-1)) in both rows
    0.313262
    """
    validate(queries, keys, temperature, hard_negatives, log_weight, exclude, queue, blocks)
    xp, n = array_module(queries), queries.shape[0]
    q, q_back = normalize(queries)
    c, c_back = normalize(keys)
    h, h_back = (c[:0], None) if hard_negatives is None else normalize(hard_negatives)
    if hard_negatives is not None or queue is not None:
        c = xp.concatenate([c, h] if queue is None else [c, h, normalize(queue)[0]])
    own = len(h) // n
    rows = rows_per_block(n, len(c), q) if blocks is None else blocks

    if rows:
        logits = BlockedLogits(q, c, temperature, rows, exclude, log_weight, own)
        loss, *gradients = (both_ways if symmetric else one_way)(logits, temperature)
    else:
        similarity = q @ c.T
        loss, dsimilarity = row_loss(similarity, temperature, exclude, log_weight, own)
        if symmetric:
            transposed = None if exclude is None else exclude[:, :n].T
            column_loss, dcolumns = row_loss(similarity[:, :n].T, temperature, transposed)
            loss = (loss + column_loss) * loss.dtype.type(0.5)
            dsimilarity[:, :n] += dcolumns.T
            dsimilarity *= loss.dtype.type(0.5)

    def backward():
        dq, dc = gradients if rows else (dsimilarity @ c, dsimilarity.T @ q)
        dqueries, dkeys = q_back(dq), c_back(dc[:n])
        return (dqueries, dkeys) if h_back is None else (dqueries, dkeys, h_back(dc[n : n + len(h)]))

    return loss, backward


def row_loss(similarity, temperature, exclude, log_weight=0.0, own=0):
    """Mean loss over rows and dL/dsimilarity; similarity (N, C), the positive of row i in column i, its `own` hard
    negatives, which get log_weight, from column N + i own on."""
    xp, number = array_module(similarity), similarity.dtype.type
    n, candidates = similarity.shape
    positive = xp.eye(n, candidates, dtype=bool)
    d = similarity - similarity.diagonal()[:, None]
    d /= number(temperature)
    if log_weight:
        row = xp.arange(n)[:, None]
        d[row, n + own * row + xp.arange(own)] += number(log_weight)
    d = xp.where(positive if exclude is None else positive | exclude, number(-np.inf), d)

    # log-sum-exp over the negatives; a row without any has top = -inf, and exp(-inf - 0) = 0 is then right
    top = d.max(axis=1, keepdims=True)
    shift = xp.where(top == -np.inf, number(0), top)
    e = xp.exp(d - shift)
    total = e.sum(axis=1, keepdims=True)
    per_row, slope = log_one_plus(shift, total)

    p = e
    p *= slope
    p = xp.where(positive, -p.sum(axis=1, keepdims=True), p)
    p *= number(1 / (n * temperature))
    return per_row.mean(), p


def validate(queries, keys, temperature, hard_negatives, log_weight, exclude, queue, blocks):
    require_floats(queries=queries, keys=keys)
    if queries.ndim != 2 or queries.shape != keys.shape or queries.shape[0] == 0:
        raise InputError(f"queries {queries.shape} and keys {keys.shape} must be two (N, D) arrays of one shape")
    check_temperature(temperature, queries.dtype)
    if math.isnan(log_weight) or log_weight == math.inf or (log_weight and hard_negatives is None):
        raise InputError(f"log_weight is {log_weight}; expected a number below infinity, and hard negatives to weigh")
    n, width = queries.shape
    candidates = n
    if hard_negatives is not None:
        require_floats(hard_negatives=hard_negatives)
        shape = hard_negatives.shape
        if len(shape) != 2 or shape[1] != width or shape[0] == 0 or shape[0] % n:
            raise InputError(f"hard negatives {shape} must be (N * k, D) with N = {n}, D = {width}")
        candidates += shape[0]
    if queue is not None:
        candidates += queue_rows(queue, width)
    if blocks is not None and not is_whole(blocks, 0):
        raise InputError(f"blocks is {blocks!r}; expected None, 0 for the whole matrix, or a number of rows")
    if exclude is not None:
        require_booleans(exclude=exclude)
        if exclude.shape != (n, candidates):
            raise InputError(f"exclude {exclude.shape} must have one entry per candidate, ({n}, {candidates})")
        if on_host(exclude) and exclude[np.arange(n), np.arange(n)].any():
            row = int(exclude[np.arange(n), np.arange(n)].argmax())
            raise InputError(f"exclude removes the positive of row {row}; only negatives can be excluded")


def check_temperature(temperature, dtype):
    """Raise DegenerateTemperature unless temperature is finite, positive, and no logit overflows in dtype."""
    if not (math.isfinite(temperature) and temperature > 0):
        raise DegenerateTemperature(f"temperature is {temperature}; expected a finite number above 0")
    if 2 / temperature > float(np.finfo(dtype).max):
        raise DegenerateTemperature(f"temperature is {temperature}, so small that a logit overflows {dtype}")


def queue_rows(queue, width):
    """Number of rows of a queue; InputError unless it is a float array (Q, width)."""
    require_floats(queue=queue)
    if queue.ndim != 2 or queue.shape[1] != width:
        raise InputError(f"queue {queue.shape} must be (Q, D) with D = {width}")
    return queue.shape[0]
