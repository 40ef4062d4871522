"""Exercise 12 (chapter 7): from the loss back to the profiles.

The toy of chapter 7 with any numbers: the views of the profiles U are U * keep_a / (1 - p), the queries, and
U * keep_b / (1 - p), the keys. nano_simcse.losses.info_nce(queries, keys, tau) returns the loss and backward;
backward() returns its gradients with respect to both views. Return the loss and dL/dU.
"""

from nano_simcse.losses import info_nce  # noqa: F401


def profile_grad(U, keep_a, keep_b, p, tau):
    """U (N, D), masks bool (N, D), drop rate p, temperature tau. Returns the loss and dU (N, D)."""
    raise NotImplementedError
