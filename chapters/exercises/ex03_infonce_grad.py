"""Exercise 3 (chapter 1): InfoNCE and its gradient.

Row i of Q belongs to row i of P; every other row of P is a negative of query i.

    s_ij = cos(Q_i, P_j) / tau,   loss = mean over i of -log softmax(s_i)_i

Return the loss and its gradients with respect to the RAW rows, which come in any length. Very small tau occurs.
"""

import numpy as np  # noqa: F401


def infonce_grad(Q, P, tau: float):
    """Q and P (N, D) as they come, tau > 0. Gives loss (a number) and its gradients dQ, dP (N, D)."""
    raise NotImplementedError
