"""Exercise 12 (chapter 7): from the loss back to the profiles."""

from nano_simcse.losses import info_nce


def profile_grad(U, keep_a, keep_b, p, tau):
    """U (N, D), masks bool (N, D), drop rate p, temperature tau. Returns the loss and dU (N, D)."""
    loss, backward = info_nce(U * keep_a / (1 - p), U * keep_b / (1 - p), tau)
    d_first, d_second = backward()
    return loss, (keep_a * d_first + keep_b * d_second) / (1 - p)
