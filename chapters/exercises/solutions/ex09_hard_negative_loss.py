"""Exercise 9 (chapter 4): InfoNCE with mined negatives."""

import numpy as np


def unit_rows(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def hard_negative_loss(Q, P, Nh, tau: float, pos_ids, neg_ids):
    """Q, P (N, D) and Nh (N k, D) as they come; ids (N,) and (N k,). Returns the loss, a number."""
    s = unit_rows(Q) @ unit_rows(np.concatenate([P, Nh])).T / tau
    own = np.eye(*s.shape, dtype=bool)
    repeats = pos_ids[:, None] == np.concatenate([pos_ids, neg_ids])
    s = np.where(repeats & ~own, -np.inf, s)
    top = s.max(axis=1, keepdims=True)
    return np.mean(np.log(np.exp(s - top).sum(axis=1)) + top[:, 0] - s[own])
