"""Exercise 18 (chapter 11): the loss of CLIP and its learned scale.

Pairs of rows that have length 1 already, and a parameter t: the scale is exp(t), but at most max_scale. The logits are
scale x cosine. The loss is the mean of two InfoNCE losses: each row of the logits chooses among the columns, each
column among the rows.

Return the loss and its gradients with respect to Qn, Pn and t. Treat Qn and Pn as free (whoever normalised them takes
care of that), and mind what t can still do once the scale is cut off.
"""

import numpy as np  # noqa: F401


def clip_loss_grad(Qn, Pn, t: float, max_scale: float = 100.0):
    """Qn, Pn (N, D). Gives loss, dQn and dPn (N, D), dt; loss and dt are numbers."""
    raise NotImplementedError
