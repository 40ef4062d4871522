"""Skip-gram with negative sampling: is this neighbour real, or was it drawn from a hat?

A centre word c and a word o seen near it are a real pair; c and k words n_1 ... n_k drawn from a noise distribution q
are false ones. Two tables give the scores: v_c from the table of centres, u_o from the table of contexts.

Forward      s = v . u,   s_j = v . n_j
             l = log(1 + e^-s) + sum_j log(1 + e^s_j)          logistic loss: real pairs up, false pairs down
             loss = mean of l over the B pairs

Backward     with sigma(x) = 1 / (1 + e^-x):
             dl/ds = -sigma(-s)            dl/ds_j = sigma(s_j)
             dv    = -sigma(-s) u + sum_j sigma(s_j) n_j
             du    = -sigma(-s) v          dn_j   = sigma(s_j) v                    each divided by B

What it is after: for one pair of words the expected loss per draw is p(o | c) log(1 + e^-s) + k q(o) log(1 + e^s), and
setting its derivative to zero gives   s* = log p(o | c) - log(k q(o)):   with q the frequency of words, the pointwise
mutual information minus log k. All scores 0 cost (1 + k) log 2; the best score that is the same for all pairs is
-log k and costs (1 + k) log(1 + k) - k log k: that much is known to a model that knows no word at all.

Sources: Mikolov et al., arXiv 1310.4546, equation 4; the optimum, Levy and Goldberg, NIPS 2014.
"""

from ..arrays import require_floats
from ..backend import array_module
from ..errors import InputError


def skip_gram(centres, contexts, negatives):
    """Mean logistic loss of B real pairs and k false ones for each, on rows already looked up.

    centres (B, D); contexts (B, D), row b seen near centre b; negatives (B, k, D). The rows are not normalised: their
    lengths are part of the score. Returns (loss 0-d, backward); backward() -> (dcentres, dcontexts, dnegatives).
    Raises InputError for arrays that are not of floats, an empty batch or shapes that do not fit.

    >>> import numpy as np
    >>> v = np.array([[1.0, -1.0]])
    >>> loss, _ = skip_gram(v, np.array([[2.0, 1.0]]), np.array([[[0.0, 1.0], [1.0, -1.0]]]))
    >>> float(round(loss, 6))                # scores 1, -1, 2
    2.753451
    """
    require_floats(centres=centres, contexts=contexts, negatives=negatives)
    if centres.ndim != 2 or 0 in centres.shape or contexts.shape != centres.shape:
        raise InputError(f"centres {centres.shape} and contexts {contexts.shape} must be two (B, D) arrays, B >= 1")
    if negatives.ndim != 3 or negatives.shape[::2] != centres.shape:
        raise InputError(f"negatives {negatives.shape} must be (B, k, D) with B, D = {centres.shape}")
    xp, number = array_module(centres), centres.dtype.type
    candidates = xp.concatenate([contexts[:, None, :], negatives], axis=1)  # (B, 1 + k, D), the real one first
    x = xp.matmul(candidates, centres[:, :, None])[:, :, 0]
    x[:, 0] *= number(-1)  # so that every entry costs log(1 + e^x)
    small = xp.exp(-xp.abs(x))
    loss = (xp.maximum(x, number(0)) + xp.log1p(small)).sum(axis=1).mean()

    def backward():
        ds = xp.where(x >= 0, number(1), small) / (number(1) + small)  # sigma(x), no overflow on either side
        ds *= number(1 / len(centres))
        ds[:, 0] *= number(-1)
        dcentres = xp.matmul(ds[:, None, :], candidates)[:, 0]
        dcandidates = ds[:, :, None] * centres[:, None, :]
        return dcentres, dcandidates[:, 0], dcandidates[:, 1:]

    return loss, backward
