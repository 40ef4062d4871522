"""The part of InfoNCE that some of the queries contribute: how the loss of one batch is spread over processes.

With N queries, of which this part takes those in `rows`,

    loss = sum over parts of (1 / N) sum_{i in rows} l_i        l_i as in info_nce, against all candidates

The whole loss on every process would need no exchange of gradients, but costs R times as much: with 64 processes of 64
sentences and a small encoder (2 layers, D = 128), more than all the rest of a step.

So each part computes n = len(rows) rows of the N x C matrix and no more. Its gradient has a part for its own queries,
which is complete, and one for every candidate, of which the other parts have the rest: the sum over parts of all that
backward() returns is the gradient of info_nce.

The candidates are put in another order, the part's own first: then they stand where a batch of its own would have
them, and `info_nce_blocks` serves unchanged.
"""

import numpy as np

from ..backend import array_module, device_of, to_device
from ..layers.normalize import normalize
from .info_nce import validate
from .info_nce_blocks import BlockedLogits, one_way, rows_per_block


def info_nce_rows(queries, keys, temperature, rows, *, hard_negatives=None, log_weight=0.0, exclude=None, queue=None):
    """Share of the mean InfoNCE loss that the queries in the slice `rows` have, and of its gradients.

    The other arguments, all of the whole batch, as in `info_nce`. Returns (loss 0-d, backward); backward() ->
    (dqueries, dkeys[, dhard_negatives]), each of the shape of its argument. Nothing, 0 and zeros, for an empty slice.
    Raises InputError as `info_nce` does.

    >>> u = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> round(sum(float(info_nce_rows(u, u, 1.0, slice(i, i + 1))[0]) for i in range(2)), 6)
    0.313262
    """
    validate(queries, keys, temperature, hard_negatives, log_weight, exclude, queue, None)
    xp, n, (start, stop, _) = array_module(queries), len(queries), rows.indices(len(queries))
    moving = [keys] if hard_negatives is None else [keys, hard_negatives]  # the candidates with a gradient
    if stop <= start:
        return xp.zeros((), queries.dtype), lambda: tuple(xp.zeros_like(x) for x in (queries, *moving))
    q, q_back = normalize(queries[rows])
    c, c_back = normalize(xp.concatenate(moving))
    learned, share = len(c), q.dtype.type((stop - start) / n)
    if queue is not None:
        c = xp.concatenate([c, normalize(queue)[0]])
    own = (learned - n) // n
    first = np.concatenate([np.arange(start, stop), n + np.arange(own * start, own * stop)])
    order = to_device(np.concatenate([first, np.delete(np.arange(len(c)), first)]), device_of(q))
    excluded = None if exclude is None else exclude[rows][:, order]

    block = rows_per_block(stop - start, len(c), q) or stop - start
    logits = BlockedLogits(q, c[order], temperature, block, excluded, log_weight, own)
    loss, dq, dordered = one_way(logits, temperature)

    def backward():
        dqueries, dc = xp.zeros_like(queries), xp.empty_like(c)
        dqueries[rows] = q_back(dq * share)
        dc[order] = dordered * share
        return dqueries, *xp.split(c_back(dc[:learned]), [n] if hard_negatives is not None else [])

    return xp.asarray(loss * share), backward
