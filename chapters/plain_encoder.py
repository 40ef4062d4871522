"""The plainest encoder with something to throw away: ReLU layer, linear head; trained on pairs with InfoNCE.

    hidden = relu(x W1 + b1)          what is kept when the head is discarded
    out    = hidden W2 + b2           what the loss sees (it scales rows to unit length)

hidden = 0 units makes it one matrix, out = x W2 + b2. Two encoders make two towers.
"""

import numpy as np

from nano_simcse.layers import linear
from nano_simcse.losses import info_nce
from nano_simcse.optim import Adam
from nano_simcse.parameters import Parameters


class PlainEncoder:
    """units: entries of x; hidden, width: sizes of the two layers; bias=False leaves both biases at 0."""

    def __init__(self, units, width=16, hidden=64, seed=0, bias=True):
        self.bias, self.hidden_units = bias, hidden
        shapes = {"w1": (units, hidden), "b1": (hidden,)} if hidden else {}
        self.params = Parameters(shapes | {"w2": (hidden or units, width), "b2": (width,)}, dtype=np.float64)
        rng = np.random.default_rng([seed, 17])
        for name in ("w1", "w2"):
            if name in shapes or name == "w2":
                weight = self.params[name]
                weight[...] = rng.standard_normal(weight.shape) * np.sqrt((2 if hidden else 1) / len(weight))

    def forward(self, x):
        """(out (n, width), backward); backward(dout) -> gradients, Parameters of the same layout."""
        p, hidden, first_back = self.params, x, None
        if self.hidden_units:
            before, first_back = linear(x, p["w1"], p["b1"])
            hidden = np.maximum(before, 0)
        out, second_back = linear(hidden, p["w2"], p["b2"])

        def backward(dout):
            g = p.zeros_like()
            dhidden, g["w2"][...], g["b2"][...] = second_back(dout)
            if first_back is not None:
                _, g["w1"][...], g["b1"][...] = first_back(dhidden * (hidden > 0))
            if not self.bias:
                for name in ("b1", "b2"):
                    if name in g:
                        g[name][...] = 0
            return g

        return out, backward

    def hidden(self, x):
        """The layer before the head."""
        return np.maximum(x @ self.params["w1"] + self.params["b1"], 0)

    def encode(self, x):
        """What the loss sees, without a backward."""
        h = self.hidden(x) if self.hidden_units else x
        return h @ self.params["w2"] + self.params["b2"]


def loss_of_weights(encoder, x, y, tau=0.5):
    """flat weights -> (InfoNCE of the pairs, its gradient in the order of the flat buffer), for a gradient check."""

    def loss_at(flat):
        encoder.params.flat[:] = flat
        (q, q_back), (c, c_back) = encoder.forward(x), encoder.forward(y)
        loss, back = info_nce(q, c, tau)
        dq, dc = back()
        return loss, q_back(dq).flat + c_back(dc).flat

    return loss_at


def train(encoder, draw, steps, tau=0.1, lr=0.005, other=None, symmetric=False, seed=0):
    """Train in place. draw(rng) -> (x, y) or (x, y, exclude); y goes through `other` where there is one.

    Returns the losses (steps,).
    """
    rng, losses = np.random.default_rng([seed, 18]), np.empty(steps)
    towers = [encoder] if other is None else [encoder, other]
    adams = [Adam(tower.params) for tower in towers]
    for step in range(steps):
        x, y, *exclude = draw(rng)
        n = len(x)
        if other is None:
            out, back = encoder.forward(np.concatenate([x, y]))
            q, c = out[:n], out[n:]
        else:
            (q, back), (c, other_back) = encoder.forward(x), other.forward(y)
        losses[step], loss_back = info_nce(q, c, tau, exclude=exclude[0] if exclude else None, symmetric=symmetric)
        dq, dc = loss_back()
        gradients = [back(np.concatenate([dq, dc]))] if other is None else [back(dq), other_back(dc)]
        for adam, gradient in zip(adams, gradients, strict=True):
            adam.step(gradient, lr)
    return losses
