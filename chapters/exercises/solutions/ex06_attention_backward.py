"""Exercise 6 (chapter 2): backward of attention."""

import numpy as np


def attention_backward(do, q, k, v):
    """All (T, K). Returns dq, dk, dv, each (T, K)."""
    root = np.sqrt(q.shape[1])
    s = q @ k.T / root
    a = np.exp(s - s.max(axis=1, keepdims=True))
    a = a / a.sum(axis=1, keepdims=True)
    dv = a.T @ do
    da = do @ v.T
    ds = a * (da - (da * a).sum(axis=1, keepdims=True)) / root
    return ds @ k, ds.T @ q, dv
