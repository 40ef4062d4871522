"""The CLIP loss of a batch that is spread over W workers, none of which holds the N x N matrix.

Every worker gathers all embeddings, then computes two slices: the rows of its own queries against all keys, and the
columns of its own keys against all queries. The workers are simulated: a list of shards stands for them.

Forward      K = gather(k_1 ... k_W), Q = gather(q_1 ... q_W)
             loss_w = sum over own rows of the row loss + sum over own columns of the column loss
             loss   = (1 / 2N) sum_w loss_w

Backward     q_w acts in two places: as the query of its own rows, and in every worker's columns as a candidate. The
             second part arrives only through the gather, whose derivative hands each worker the sum over all workers
             of what they found for its rows (a reduce-scatter).
             A gather that returns plain copies drops the second part: the loss is right, the gradient is not.

Source: Radford et al., arXiv 2103.00020, Section 2.5, for the slices.
"""

from ..backend import array_module
from ..errors import InputError
from ..layers.normalize import normalize
from .info_nce import row_loss
from .learned_scale import check_pairs, clipped_scale


def sharded_clip_loss(query_shards, key_shards, log_scale, *, max_scale=100.0, through_gather=True):
    """clip_loss of the concatenated shards, from slices.

    query_shards, key_shards   lists of W arrays (n_w, D), not normalised; pairs stand in the same place of both
    log_scale, max_scale       as for clip_loss
    through_gather             False: the gather returns constants, as a plain all_gather does

    Returns (loss, backward): loss a 0-d array; backward() -> (list of dqueries, list of dkeys, dlog_scale).
    Raises InputError for shards that do not pair up, and for what clip_loss refuses.

    >>> import numpy as np
    >>> u = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> loss, backward = sharded_clip_loss([u[:1], u[1:]], [u[:1], u[1:]], 0.0)
    >>> round(float(loss), 6)
    0.313262
    """
    if not query_shards or len(query_shards) != len(key_shards):
        raise InputError(f"{len(query_shards)} shards of queries, {len(key_shards)} of keys; expected equally many")
    for queries, keys in zip(query_shards, key_shards, strict=True):
        check_pairs(queries, keys)
    scale, passes = clipped_scale(query_shards[0], log_scale, max_scale)
    q, q_back = zip(*(normalize(x) for x in query_shards), strict=True)
    k, k_back = zip(*(normalize(x) for x in key_shards), strict=True)
    all_q, all_q_back = all_gather(q)
    all_k, all_k_back = all_gather(k)

    n, start, rows, columns = len(all_q), 0, [], []
    for own_q, own_k in zip(q, k, strict=True):
        rows.append(_slice(own_q, all_k, start, scale, n))
        columns.append(_slice(own_k, all_q, start, scale, n))
        start += len(own_q)
    slices = [*rows, *columns]
    loss = sum(s[0] for s in slices)

    def backward():
        dq, dk = [s[2] for s in rows], [s[2] for s in columns]
        if through_gather:
            dq = [own + other for own, other in zip(dq, all_q_back([s[3] for s in columns]), strict=True)]
            dk = [own + other for own, other in zip(dk, all_k_back([s[3] for s in rows]), strict=True)]
        dqueries = [back(d) for back, d in zip(q_back, dq, strict=True)]
        dkeys = [back(d) for back, d in zip(k_back, dk, strict=True)]
        return dqueries, dkeys, passes * sum(s[1] for s in slices)

    return loss, backward


def all_gather(shards):
    """All shards (n_w, D) one below the other, as every worker receives them.

    Returns (whole (N, D), backward); backward(list of dwhole, one per worker) -> list of dshard: the sum over
    workers, cut into shards again.
    """
    whole = array_module(shards[0]).concatenate(shards)

    def backward(dwhole):
        total, start, parts = sum(dwhole), 0, []
        for shard in shards:
            parts.append(total[start : start + len(shard)])
            start += len(shard)
        return parts

    return whole, backward


def _slice(own, everyone, start, scale, n):
    """Half of the loss of own (n_w, D), rows start ... of the batch, as queries of everyone (N, D).

    Returns (share of the loss, of dL/dlog_scale, of dL/down (n_w, D), of dL/deveryone (N, D)).
    """
    xp, number = array_module(own), own.dtype.type
    candidates = xp.roll(everyone, -start, axis=0)  # own pairs first, where the row loss looks for the positives
    z = scale * (own @ candidates.T)
    loss, dz = row_loss(z, 1.0, None, 0.0)
    share = number(0.5 * len(own) / n)
    dz *= share
    dc = scale * dz
    return loss * share, (dz * z).sum(), dc @ candidates, xp.roll(dc.T @ own, start, axis=0)
