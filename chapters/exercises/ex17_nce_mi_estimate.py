"""Exercise 17 (chapter 10): a lower bound on mutual information.

A critic has scored N contexts against N candidates; the true pairs are on the diagonal. Each row is a game: which
candidate belongs to this context? A guess costs log N nats. What the critic saves of them, on average over the rows, is
an estimate of a lower bound on the mutual information. Scores in the thousands occur.
"""

import numpy as np  # noqa: F401


def nce_mi_estimate(S):
    """S (N, N) scores, logits already. One number, in nats."""
    raise NotImplementedError
