"""InfoNCE with mined passages, shared over the batch, and known duplicates taken out by their ids.

Row i of Q has its positive at row i of P. Its candidates are the B positives of the batch and all B k mined passages,
its own k and those of everybody else: a logit matrix of shape (B, B + B k), B - 1 + B k negatives per query.

             s_ij = cos(q_i, c_j) / tau
             loss = mean_i ( log sum_{j not masked} exp s_ij - s_ii )

Mask         column j is taken out of row i where it holds a text with the id of row i's own positive and is not the
             positive itself:
                 in-batch block   pos_ids[j] = pos_ids[i], j != i      two queries with one answer
                 mined block      neg_ids[m] = pos_ids[i]              a miner that found the answer
             Such a column repeats the positive: left in, it takes at least half of the row's probability, for ever,
             and its gradient pushes away the very text the row is asked to approach. Masking is exact: the loss and
             all gradients are those of a candidate list from which the column was deleted.

             Not masked: a right answer under another id (a false negative), and one negative that two queries mined
             (it counts twice, as log 2 on its logit).

Derivation, forward and backward are those of `info_nce`, which computes it with `exclude`; the (i, i) entry is never
masked.

Source: Karpukhin et al., arXiv 2004.04906, Section 3.2 (one BM25 passage per question, shared over the batch).
"""

import numpy as np

from ..arrays import require_floats
from ..backend import device_of, to_device
from ..errors import InputError
from .info_nce import info_nce


def hard_negative_loss(Q, P, Nh, tau: float, pos_ids, neg_ids):
    """Mean InfoNCE of B queries over in-batch and mined candidates, duplicates masked by id.

    Q, P      (B, D), not normalised: queries and their passages
    Nh        (B * k, D) or (B, k, D), k >= 1: rows i k ... i k + k - 1 were mined for query i; every query sees all
    tau       temperature, > 0
    pos_ids   (B,) ids of the rows of P;  neg_ids (B * k,) or (B, k): ids of the rows of Nh. Equal ids, equal text.

    Returns (loss, backward): loss a 0-d array; backward() -> (dQ, dP, dNh) in the shapes of the arguments.
    Raises InputError for ids whose number does not fit or that cannot be compared, and for everything `info_nce`
    refuses.

    >>> q = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> round(float(hard_negative_loss(q, q, -q, 1.0, [7, 8], [9, 10])[0]), 6)    # log(1 + 2 / e + 1 / e^2)
    0.626523
    >>> round(float(hard_negative_loss(q, q, q, 1.0, [7, 8], [7, 8])[0]), 6)      # answers, masked: log(1 + 2 / e)
    0.551445
    """
    require_floats(Q=Q, P=P, Nh=Nh)
    if not Q.ndim == P.ndim == 2 or Nh.ndim not in (2, 3):
        raise InputError(
            f"Q {Q.shape} and P {P.shape} must be (B, D), and Nh {Nh.shape} must be (B * k, D) or (B, k, D)"
        )
    rows = Nh.reshape(-1, Nh.shape[-1]) if Nh.ndim == 3 else Nh
    exclude = duplicate_mask(pos_ids, neg_ids)
    candidates = len(P) + len(rows)
    if exclude.shape != (len(Q), candidates):
        raise InputError(
            f"pos_ids and neg_ids give {exclude.shape[0]} + {exclude.shape[1] - exclude.shape[0]} ids; "
            f"expected one per row of P and Nh, {len(P)} + {len(rows)}"
        )
    loss, loss_backward = info_nce(Q, P, tau, hard_negatives=rows, exclude=to_device(exclude, device_of(Q)))

    def backward():
        dq, dp, dn = loss_backward()
        return dq, dp, dn.reshape(Nh.shape)

    return loss, backward


def duplicate_mask(pos_ids, neg_ids=()):
    """bool (B, B + number of neg_ids): True where a candidate repeats the row's own positive and is not it.

    pos_ids (B,), neg_ids of any shape: both integers or both strings, on the host. Raises InputError if pos_ids is not
    one-dimensional and for ids of any other kind: 7 never equals "7", and a missing id equals every other.

    >>> duplicate_mask(["a", "b", "a"]).astype(int)
    array([[0, 0, 1],
           [0, 0, 0],
           [1, 0, 0]])
    """
    kinds = _kind_of_ids("pos_ids", pos_ids), _kind_of_ids("neg_ids", neg_ids)
    positive, mined = np.asarray(pos_ids), np.asarray(neg_ids).reshape(-1)
    if positive.ndim != 1:
        raise InputError(f"pos_ids must hold one id per query, got shape {positive.shape}")
    if mined.size and kinds[0] != kinds[1]:
        raise InputError(f"pos_ids are {kinds[0]} and neg_ids are {kinds[1]}; expected ids of one kind")
    blocks = [positive, mined] if mined.size else [positive]
    mask = np.concatenate([positive[:, None] == ids for ids in blocks], axis=1)
    return mask & ~np.eye(*mask.shape, dtype=bool)


def _kind_of_ids(name, ids):
    """What all of the ids are, "integers" or "strings"; InputError for anything else."""
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iuU":
        return "strings" if ids.dtype.kind == "U" else "integers"
    each = np.asarray(ids, dtype=object).reshape(-1)  # as they were given: NumPy's own choice for [7, "a"] is strings
    for kind, types in (("integers", int | np.integer), ("strings", str)):
        if all(isinstance(one, types) for one in each):
            return kind
    found = " and ".join(sorted({type(one).__name__ for one in each}))
    raise InputError(f"{name} hold {found}; expected all of them integers or all strings")
