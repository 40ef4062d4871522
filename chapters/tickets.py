"""A help desk: the same request comes in again and again, in other words.

1,000 requests (meanings of trails.World); request r is asked in proportion to 1 / r^skew. A ticket is one asking of it:
the meaning of the request, everything else drawn anew. Two tickets of one request in a batch are a false negative.
q = sum of the squared probabilities is the chance that two random tickets ask the same.
"""

import numpy as np
from linear_encoder import LinearEncoder
from trails import LATENTS, World

from nano_simcse.evaluation import spearman
from nano_simcse.layers import normalize
from nano_simcse.losses import info_nce

REQUESTS = 1000


class Desk:
    """The tickets of one seed. skew 0: all requests equally common."""

    def __init__(self, seed, skew):
        self.world = World(seed)
        self.rng = np.random.default_rng([seed, 3])
        self.meanings = self.rng.standard_normal((REQUESTS, LATENTS))
        weights = 1 / np.arange(1, REQUESTS + 1) ** skew
        self.weights = weights / weights.sum()

    @property
    def q(self):
        """Probability that two tickets drawn independently ask the same."""
        return float((self.weights**2).sum())

    def requests(self, n, distinct=False):
        """n request numbers; distinct: no request twice."""
        return self.rng.choice(REQUESTS, n, p=self.weights, replace=not distinct)


def duplicates(requests):
    """bool (n, n): another ticket of the same request."""
    return (requests[:, None] == requests) & ~np.eye(len(requests), dtype=bool)


def train(seed=0, tau=0.05, batch=64, skew=0.0, steps=300, lr=0.01, distinct=False, exclude=None, symmetric=False):
    """Train a linear encoder on tickets; returns (Spearman on graded pairs of fresh meanings, last loss).

    exclude: None, "known" (tickets of the same request are struck out of the denominator), or a cosine above which a
    negative is struck out from step 50 on (the encoder's own opinion).
    """
    desk = Desk(seed, skew)
    encoder = LinearEncoder(desk.world.train.shape[1], seed=seed, lr=lr)
    loss = np.nan
    for step in range(steps):
        requests = desk.requests(batch, distinct)

        def objective(queries, keys, requests=requests, step=step):
            struck = duplicates(requests) if exclude == "known" else None
            if isinstance(exclude, float) and step >= 50:
                struck = normalize(queries)[0] @ normalize(keys)[0].T > exclude
                np.fill_diagonal(struck, False)
            return info_nce(queries, keys, tau, exclude=struck, symmetric=symmetric)

        loss = encoder.step(desk.world.say(desk.meanings[requests]), objective)
    a, b = normalize(encoder.encode(desk.world.first))[0], normalize(encoder.encode(desk.world.second))[0]
    return spearman((a * b).sum(axis=1), desk.world.gold), loss


def study(settings, seeds):
    """(settings, 2): mean and standard deviation of the Spearman correlation, x 100, over seeds."""
    scores = [[100 * train(seed, **setting)[0] for seed in seeds] for setting in settings]
    return np.stack([np.mean(scores, axis=1), np.std(scores, axis=1)], axis=1)
