"""Exercise 6 (chapter 2): backward of attention.

One head, one sentence of T tokens, no dropout:

    S = q k^T / sqrt(K),   A = softmax of each row of S,   o = A v

Given do = dL/do, find dq, dk and dv. Undo the three steps from the last to the first.
"""

import numpy as np  # noqa: F401


def attention_backward(do, q, k, v):
    """All (T, K). Returns dq, dk, dv, each (T, K)."""
    raise NotImplementedError
