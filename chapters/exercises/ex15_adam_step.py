"""Exercise 15 (chapter 9): one step of Adam.

Adam keeps running means m of the gradient g and v of its square, both from zero, and divides by what that start has
cost. Do step number t (the first is 1) and return the new parameters and the new m and v as the next step needs them.
eps is added to the root.
"""

import numpy as np  # noqa: F401


def adam_step(theta, g, m, v, t, lr, beta1, beta2, eps):
    """theta, g, m, v (n,), m and v from before this step. Returns theta, m, v; the arguments stay as they are."""
    raise NotImplementedError
