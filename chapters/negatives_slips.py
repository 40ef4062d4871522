"""Chapter 15's counterexamples: forms of the loss and its tools that look right and are not, as small as they get."""

import numpy as np
from negatives_runs import peak_bytes


def unit(x):
    """Rows scaled to length 1."""
    return x / np.linalg.norm(x, axis=1, keepdims=True)


class Reordered:
    """A sampler that returns all other rows whatever its cap, the mined ones first."""

    name = "reordered"

    def __init__(self, hard, cap):
        self.hard, self.cap = hard, cap

    def candidates(self, embeddings, anchor):
        pool = [j for j in range(len(embeddings)) if j != anchor]
        front = list(self.hard[anchor][: int(self.cap * len(pool))])
        return front + [j for j in pool if j not in front]


def masked_by(number, a, p, t):
    """The loss over both blocks where an anchor is lowered by `number` in its own row instead of removed."""
    n = len(a)
    s = unit(a) @ np.vstack([unit(p), unit(a)]).T / t
    s[np.arange(n), n + np.arange(n)] += number
    top = s.max(axis=1, keepdims=True)
    return (np.log(np.exp(s - top).sum(axis=1)) + top[:, 0] - np.diag(s)).mean()


def geometry_from_shifted(a, p, tau):
    """Alignment, uniformity and mean cosine as if tau times logits less their row maximum were cosines."""
    n = len(a)
    s = unit(a) @ np.hstack([unit(p).T, unit(a).T]) / tau
    s[:, n:][np.eye(n, dtype=bool)] = -1e4
    s = (s - s.max(axis=1, keepdims=True)) * tau
    pairs = s[:, n:][np.triu_indices(n, 1)]
    return (2 - 2 * np.diag(s)).mean(), np.log(np.exp(-2 * (2 - 2 * pairs)).mean()), pairs.mean()


def mined_after_reset(a, pair, tau, k):
    """The k best of anchor pair[0] where the pair was lowered by 1e4, rows were shifted, then self was set to -1e4."""
    s = unit(a) @ unit(a).T / tau
    s[pair] -= 1e4
    s -= s.max(axis=1, keepdims=True)
    np.fill_diagonal(s, -1e4)
    return np.argsort(-s[pair[0]])[:k].tolist()


def bytes_of_three_arrays(x, y):
    """Bytes at the peak of a step that makes logits, a mask and the exponentials as arrays of their own."""

    def step():
        logits = np.concatenate([x @ y.T, x @ x.T], axis=1)
        logits += (mask := np.zeros_like(logits))
        result = np.log(np.exp(logits).sum(axis=1))
        return result, mask

    return peak_bytes(step)


def bytes_of_log_sum_exp(z):
    """Bytes of log(sum(exp z)) written as one expression."""
    return peak_bytes(lambda: np.log(np.exp(z).sum(axis=1)))
