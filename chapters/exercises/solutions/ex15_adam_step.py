"""Exercise 15 (chapter 9): one step of Adam."""

import numpy as np


def adam_step(theta, g, m, v, t, lr, beta1, beta2, eps):
    """theta, g, m, v (n,), m and v from before this step. Returns theta, m, v; the arguments stay as they are."""
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g**2
    mean = m / (1 - beta1**t)
    square = v / (1 - beta2**t)
    return theta - lr * mean / (np.sqrt(square) + eps), m, v
