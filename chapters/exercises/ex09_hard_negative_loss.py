"""Exercise 9 (chapter 4): InfoNCE with mined negatives.

N queries, their N positives and k mined texts per query. Every query is compared with all N + N k texts, by cosine over
tau; the loss is the mean of -log softmax at the query's own positive.

pos_ids and neg_ids say which texts are equal. A candidate with the id of the query's own positive is no negative, be it
another row of P or a mined text: it must not take part. The positive itself must.
"""

import numpy as np  # noqa: F401


def hard_negative_loss(Q, P, Nh, tau: float, pos_ids, neg_ids):
    """Q, P (N, D) and Nh (N k, D) as they come; ids (N,) and (N k,). Returns the loss, a number."""
    raise NotImplementedError
