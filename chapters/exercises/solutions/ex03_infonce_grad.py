"""Exercise 3 (chapter 1): InfoNCE and its gradient."""

import numpy as np


def infonce_grad(Q, P, tau: float):
    """Q and P (N, D) as they come, tau > 0. Gives loss (a number) and its gradients dQ, dP (N, D)."""
    lengths_q = np.linalg.norm(Q, axis=1, keepdims=True)
    lengths_p = np.linalg.norm(P, axis=1, keepdims=True)
    u, w = Q / lengths_q, P / lengths_p
    s = u @ w.T / tau
    s = s - s.max(axis=1, keepdims=True)
    p = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    loss = np.mean(np.log(np.exp(s).sum(axis=1)) - s.diagonal())
    ds = (p - np.eye(len(Q))) / len(Q)
    du = ds @ w / tau
    dw = ds.T @ u / tau  # row j of P: positive of query j, negative of all others
    dQ = (du - u * (du * u).sum(axis=1, keepdims=True)) / lengths_q
    dP = (dw - w * (dw * w).sum(axis=1, keepdims=True)) / lengths_p
    return loss, dQ, dP
