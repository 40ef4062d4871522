"""How many nats two views share, as far as a game of N candidates can tell.

The game: y is drawn, then a place i* in 1 ... N, then x at i* from p(x | y) and every other x_j from p(x). A critic
s(x, y) guesses the place with q(i) = softmax_i s(x_i, y); its expected cost -log q(i*) is the InfoNCE loss L_N.

The bound    I(X; Y) >= log N - L_N, for every critic and every N:

             L_N        >= H(i* | x_1 ... x_N, y)           a cross-entropy is at least the entropy
             log N - L_N <= I(i*; x_1 ... x_N | y)           the place alone is uniform and knows nothing of y
                         =  E KL( p(x_1 ... x_N | y, i*) | p(x_1 ... x_N | y) )
                         <= E KL( p(x_1 ... x_N | y, i*) | p(x_1) ... p(x_N) )   the mixture is the best reference
                         =  E log p(x_i* | y) / p(x_i*) = I(X; Y)

             The first step costs nothing where s(x, y) = log p(x | y) / p(x) + anything that depends on y alone; the
             second vanishes as N grows. As L_N >= 0, no game certifies more than log N.

Both steps need candidates drawn from p(x) independently of y. Mined negatives are not, and then the number bounds
nothing.

Source: van den Oord et al., arXiv 1807.03748; Poole et al., arXiv 1905.06922, Section 2.3.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from .backend import to_host
from .errors import InputError


def nce_mi_estimate(scores):
    """log N - mean InfoNCE loss of the rows, in nats: an estimate of a lower bound on the mutual information.

    scores (N, N): the critic's score of candidate j for context i at [i, j], divided by the temperature already; true
    pairs on the diagonal. Returns a float, at most log N; below 0 the critic does worse than guessing. It is the
    value of one sample: it scatters, and only its expectation is bounded by the mutual information.
    Raises InputError for scores that are not a square table of finite numbers.

    >>> nce_mi_estimate(np.zeros((4, 4)))
    0.0
    """
    scores = np.asarray(to_host(scores), np.float64)
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1] or scores.shape[0] == 0:
        raise InputError(f"scores of shape {scores.shape} are not a square table (N, N)")
    if not np.isfinite(scores).all():
        row = int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0])
        raise InputError(f"row {row} of the scores holds NaN or infinity")
    loss = logsumexp(scores, axis=1) - scores.diagonal()
    return float(math.log(len(scores)) - loss.mean())


@dataclass(frozen=True)
class InformationBound:
    """What an InfoNCE loss says about the mutual information of the views.

    nats          log N - loss
    ceiling       log N, which no loss can exceed
    informative   whether nats is a lower bound above the trivial 0
    reason        why it is not, else empty
    """

    nats: float
    ceiling: float
    informative: bool
    reason: str


def information_bound(loss, candidates, *, independent=True):
    """Read an InfoNCE loss as a bound on mutual information, or refuse to.

    loss: mean InfoNCE loss in nats; candidates: N per row, the positive included; independent: whether the negatives
    were drawn independently of the query (in-batch negatives of a shuffled corpus are, mined ones are not).
    Raises InputError for a loss that is not finite or negative, or fewer than 2 candidates.
    """
    if not (math.isfinite(loss) and loss >= 0):
        raise InputError(f"the loss is {loss}; an InfoNCE loss is a finite number of at least 0")
    if candidates < 2:
        raise InputError(f"a game of {candidates} candidates has nothing to tell apart; expected at least 2")
    loss, ceiling = float(loss), math.log(candidates)
    reason = ""
    if not independent:
        reason = "the negatives were chosen for their queries, so log N - loss bounds nothing"
    elif loss >= ceiling:
        reason = f"the loss {loss:.3f} is not below log {candidates} = {ceiling:.3f}, so the bound says nothing"
    return InformationBound(ceiling - loss, ceiling, not reason, reason)
