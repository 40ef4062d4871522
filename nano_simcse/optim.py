"""Optimisers on flat buffers, learning-rate schedules and gradient clipping.

SGD      theta <- theta - lr g                             with momentum: u <- mu u + g, theta <- theta - lr u

Adam     m <- b1 m + (1 - b1) g                            first moment
         v <- b2 v + (1 - b2) g^2                          second moment
         theta <- theta - lr m^ / (sqrt(v^) + eps)         m^ = m / (1 - b1^t), v^ = v / (1 - b2^t)

         Without the two corrections the first steps would be about (1 - b1) / sqrt(1 - b2) = 3.2 times too long
         relative to the moments' true size, because both start at zero.

AdamW    theta <- theta - lr wd theta first, then Adam: decay acts on the weights, not through the moments.

Sources: Kingma and Ba, arXiv 1412.6980; Loshchilov and Hutter, arXiv 1711.05101.
"""

import math

import numpy as np

from .backend import array_module, on_host, row_blocks
from .errors import InputError
from .parallel import each_span


class SGD:
    """Stochastic gradient descent on a flat buffer, with optional momentum."""

    def __init__(self, parameters, momentum=0.0):
        self.parameters, self.momentum = parameters, momentum
        self.velocity = parameters.zeros_like() if momentum else None

    def step(self, gradients, lr):
        """One update of the parameters in place; gradients: Parameters of the same layout."""
        direction = gradients.flat
        if self.momentum:
            self.velocity.flat *= direction.dtype.type(self.momentum)
            self.velocity.flat += direction
            direction = self.velocity.flat
        flat = self.parameters.flat
        flat -= direction * direction.dtype.type(lr)

    def buffers(self):
        """Name -> Parameters of what must be saved to resume."""
        return {} if self.velocity is None else {"velocity": self.velocity}


class AdamW:
    """Adam with decoupled weight decay on a flat buffer.

    parameters: Parameters, updated in place. weight_decay: wd, applied to every parameter. `steps` counts updates
    and is part of the state. Adam is AdamW with weight_decay 0.
    """

    def __init__(self, parameters, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        self.parameters, self.betas, self.eps, self.weight_decay = parameters, betas, eps, weight_decay
        self.m, self.v = parameters.zeros_like(), parameters.zeros_like()
        self.steps = 0

    def step(self, gradients, lr, workers=None, factor=1.0):
        """One update in place, block by block so that each number is read once.

        gradients: Parameters of the same layout, not changed; workers: threads that share the work; factor: number
        that every gradient is multiplied by first (`clip_factor`).

        The corrections move into two scalars: lr m^ / (sqrt(v^) + eps) = c m / (sqrt(v) + eps'), with
        c = lr sqrt(1 - b2^t) / (1 - b1^t) and eps' = eps sqrt(1 - b2^t).
        """
        self.steps += 1
        flat, number = self.parameters.flat, self.parameters.flat.dtype.type
        b1, b2 = self.betas
        root = math.sqrt(1 - b2**self.steps)
        size, eps = number(lr * root / (1 - b1**self.steps)), number(self.eps * root)
        xp, decay = array_module(flat), number(1 - lr * self.weight_decay)
        buffers = flat, gradients.flat, self.m.flat, self.v.flat

        def update_span(span):
            for block in row_blocks(flat[span]):
                theta, g, m, v = (buffer[span][block] for buffer in buffers)
                g = g * factor
                update = g - m
                update *= number(1 - b1)
                m += update
                xp.multiply(g, g, out=update)
                update -= v
                update *= number(1 - b2)
                v += update
                xp.sqrt(v, out=update)
                update += eps
                xp.divide(m, update, out=update)
                update *= size
                if self.weight_decay:
                    theta *= decay
                theta -= update

        each_span(update_span, flat.size, workers)

    def buffers(self):
        """Name -> Parameters of what must be saved to resume (besides `steps`)."""
        return {"m": self.m, "v": self.v}


class Adam(AdamW):
    """Adam: AdamW without decay."""

    def __init__(self, parameters, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(parameters, betas, eps, weight_decay=0.0)


def global_norm(gradients):
    """Euclidean length of the whole gradient, a 0-d array.

    On the host block by block, added up in float64: one float32 sum of 10^8 squares would lose three digits.
    """
    flat = gradients.flat
    if not on_host(flat):
        return array_module(flat).sqrt(flat @ flat)
    squares = (float(flat[block] @ flat[block]) for block in row_blocks(flat))
    return flat.dtype.type(math.sqrt(math.fsum(squares)))


def clip_factor(norm, limit):
    """limit / max(norm, limit), 0-d: what a gradient of this norm is multiplied by so that its norm is at most `limit`.

    It is computed where the norm is: no value of a gradient is looked at on the host, where the limit is. Raises
    InputError unless the limit is above 0 and finite in the precision of the norm: a negative one would turn the
    gradient round, and 0 / 0 is NaN.
    """
    given = limit
    with np.errstate(over="ignore"):
        limit = norm.dtype.type(limit)
    if not 0 < limit < math.inf:
        raise InputError(f"limit is {given}; expected a number above 0 that is finite in {norm.dtype}")
    return limit / array_module(norm).maximum(norm, limit)


def clip_global_norm(gradients, limit):
    """Scale the gradients in place so that their global norm is at most `limit`; returns the norm before, 0-d.

    Raises InputError for a limit that `clip_factor` refuses.
    """
    norm = global_norm(gradients)
    gradients.flat[:] *= clip_factor(norm, limit)
    return norm


SCHEDULES = ("constant", "linear", "cosine")


def learning_rate(peak, step, total, warmup=0, schedule="linear"):
    """Rate of step 0 <= step < total: rises linearly over `warmup` steps, then decays towards 0.

    linear: peak * (share of steps left); cosine: peak * (1 + cos(pi * share done)) / 2; constant: peak.
    Raises InputError for another schedule.

    >>> [learning_rate(1.0, s, 4, warmup=2) for s in range(4)]
    [0.5, 1.0, 1.0, 0.5]
    """
    if schedule not in SCHEDULES:
        raise InputError(f"schedule {schedule!r} is not one of {', '.join(SCHEDULES)}")
    if step < warmup:
        return peak * (step + 1) / warmup
    done = (step - warmup) / max(1, total - warmup)
    if schedule == "linear":
        return peak * (1 - done)
    return peak * (1 + math.cos(math.pi * done)) / 2 if schedule == "cosine" else peak
