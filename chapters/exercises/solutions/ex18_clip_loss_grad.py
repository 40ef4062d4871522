"""Exercise 18 (chapter 11): the loss of CLIP and its learned scale."""

import numpy as np


def game(z):
    """Losses of the rows of z, the right answers on the diagonal, and the softmax of each row."""
    top = z.max(axis=1, keepdims=True)
    e = np.exp(z - top)
    return np.log(e.sum(axis=1)) + top[:, 0] - z.diagonal(), e / e.sum(axis=1, keepdims=True)


def clip_loss_grad(Qn, Pn, t: float, max_scale: float = 100.0):
    """Qn, Pn (N, D). Gives loss, dQn and dPn (N, D), dt; loss and dt are numbers."""
    scale = min(np.exp(t), max_scale)
    z = scale * Qn @ Pn.T
    row_losses, rows = game(z)
    column_losses, columns = game(z.T)
    dz = (rows + columns.T - 2 * np.eye(len(z))) / (2 * len(z))
    dt = (dz * z).sum() if np.exp(t) <= max_scale else 0.0
    return np.mean(row_losses + column_losses) / 2, scale * dz @ Pn, scale * dz.T @ Qn, dt
