"""The small runs of chapter 1: hinge against quiz, rows free to move, and an encoder that reads only lengths."""

from dataclasses import dataclass

import numpy as np
from linear_encoder import LinearEncoder
from scipy.optimize import minimize
from trails import World

from nano_simcse.evaluation import spearman
from nano_simcse.layers import dropout, normalize
from nano_simcse.losses import info_nce
from nano_simcse.masks import Masks, row_labels
from nano_simcse.optim import Adam
from nano_simcse.parameters import Parameters


class TripletHinge:
    """Mean over i and j != i of max(0, s_ij - s_ii + m), s the cosines; called as (queries, keys) -> (loss, backward).

    Backward: 1 / (N (N - 1)) on s_ij and minus that on s_ii wherever the bracket is positive, else exactly 0.
    """

    def __init__(self, margin):
        self.margin = margin

    def __call__(self, queries, keys):
        q, q_back = normalize(queries)
        k, k_back = normalize(keys)
        n = len(q)
        bracket = self.bracket(q @ k.T)
        active = (bracket > 0) / (n * (n - 1))
        loss = (bracket * active).sum()
        ds = active - np.diag(active.sum(axis=1))
        return loss, lambda: (q_back(ds @ k), k_back(ds.T @ q))

    def bracket(self, s):
        """s_ij - s_ii + m, and 0 on the diagonal."""
        out = s - np.diag(s)[:, None] + self.margin
        np.fill_diagonal(out, 0)
        return out


def zero_shares(margin, tau, steps, every, n=32, seed=0):
    """Train one linear encoder per loss; rows: every `every` steps, the shares of negatives without a gradient.

    Columns: hinge exactly 0, InfoNCE exactly 0, InfoNCE below 1e-6 (on the cosine, of one row), in the training batch.
    """
    world, hinge = World(seed), TripletHinge(margin)
    draw, off, seen = np.random.default_rng([seed, 2]), ~np.eye(n, dtype=bool), {}

    def watched_hinge(queries, keys):
        seen["hinge"] = hinge.bracket(normalize(queries)[0] @ normalize(keys)[0].T)[off]
        return hinge(queries, keys)

    def watched_quiz(queries, keys):
        s = normalize(queries)[0] @ normalize(keys)[0].T
        e = np.exp((s - s.max(axis=1, keepdims=True)) / tau)
        seen["push"] = (e / e.sum(axis=1, keepdims=True) / tau)[off]
        return info_nce(queries, keys, tau)

    encoders = [(LinearEncoder(world.train.shape[1], seed=seed), loss) for loss in (watched_hinge, watched_quiz)]
    shares = []
    for step in range(steps + 1):
        x = world.train[draw.choice(len(world.train), n, replace=False)]
        for encoder, loss in encoders:
            encoder.step(x, loss)
        if step % every == 0:
            shares.append([np.mean(seen["hinge"] <= 0), np.mean(seen["push"] == 0), np.mean(seen["push"] < 1e-6)])
    return np.array(shares)


def free_rows(n, width, tau, seed=0):
    """Lowest mean InfoNCE that L-BFGS finds when queries and keys (n, width each) may move freely."""

    def objective(flat):
        rows = flat.reshape(2, n, width)
        loss, backward = info_nce(rows[0], rows[1], tau)
        return float(loss), np.stack(backward()).ravel()

    start = np.random.default_rng(seed).standard_normal(2 * n * width)
    options = {"maxiter": 5000, "maxfun": 20000, "ftol": 1e-16, "gtol": 1e-11}
    return minimize(objective, start, jac=True, method="L-BFGS-B", options=options).fun


@dataclass
class LengthOnly:
    """What became of the encoder that reads only lengths. rows: one embedding per length."""

    first_loss: float
    last_loss: float
    spearman: float
    rows: np.ndarray


def length_only(steps, lengths=32, width=64, tau=0.05, rate=0.1, lr=0.03, seed=0):
    """Train one free row per sentence length with InfoNCE on dropout views; every batch holds every length once.

    The test pairs have gold similarities (cosines of random meanings) and lengths drawn independently of them.
    """
    draw = np.random.default_rng(seed)
    parameters = Parameters({"rows": (lengths, width)}, dtype=np.float64)
    parameters["rows"][...] = 1 + 0.5 * draw.standard_normal((lengths, width))
    adam, losses = Adam(parameters), []
    labels = row_labels(np.tile(np.arange(lengths), 2), np.repeat([0, 1], lengths))
    for step in range(steps):
        masks = Masks(seed, step, rate)
        views, drop_back = dropout(np.tile(parameters["rows"], (2, 1)), masks.keep(0, labels, width), masks.scale)
        loss, back = info_nce(views[:lengths], views[lengths:], tau)
        losses.append(float(loss))
        gradients = parameters.zeros_like()
        gradients["rows"][...] = drop_back(np.concatenate(back())).reshape(2, lengths, width).sum(axis=0)
        adam.step(gradients, lr)
    rows = parameters["rows"]
    meaning = normalize(draw.standard_normal((4000, 8)))[0]
    gold = (meaning[:2000] * meaning[2000:]).sum(axis=1)
    of = normalize(rows)[0][draw.integers(lengths, size=(2, 2000))]
    return LengthOnly(losses[0], losses[-1], spearman((of[0] * of[1]).sum(axis=1), gold), rows)
