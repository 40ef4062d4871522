"""Masked language modelling: name the token that was hidden.

Forward      loss = mean_m ( log sum_v exp z_mv - z_m,target )

Backward     dL/dz_mv = (p_mv - 1[v = target_m]) / n,     p = softmax of the row

Source: Devlin et al., arXiv 1810.04805; SimCSE adds it with a small weight, arXiv 2104.08821, Appendix D.
"""

import numpy as np

from ..arrays import require_classes, require_floats
from ..backend import array_module
from ..errors import InputError


def masked_lm(logits, targets):
    """Mean softmax cross-entropy over n masked tokens.

    logits (n, V); targets (n,) integer ids in [0, V). Returns (loss 0-d, backward); backward() -> dlogits (n, V).
    Raises InputError for logits that are not floats, an empty batch, shapes that do not fit, and targets that are not
    integers or, on the host, lie outside [0, V): -100, which elsewhere means "ignore", is no token here.
    """
    require_floats(logits=logits)
    shape = np.shape(targets)
    if logits.ndim != 2 or shape != logits.shape[:1] or logits.shape[0] == 0:
        raise InputError(f"logits {logits.shape} and targets {shape} must be (n, V) and (n,) with n >= 1")
    require_classes("targets", targets, logits.shape[1])
    xp, n = array_module(logits), logits.shape[0]
    rows = xp.arange(n)
    shifted = logits - logits.max(axis=1, keepdims=True)
    e = xp.exp(shifted)
    total = e.sum(axis=1, keepdims=True)
    loss = (xp.log(total[:, 0]) - shifted[rows, targets]).mean()

    def backward():
        dlogits = e / total
        dlogits[rows, targets] -= logits.dtype.type(1)
        dlogits *= logits.dtype.type(1 / n)
        return dlogits

    return loss, backward
