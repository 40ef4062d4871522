"""Two games whose mutual information is known: a small table, where everything can be enumerated, and Gaussian views.

The game: a context y, N candidates x_1 ... x_N, one of them drawn from p(x | y), the others from p(x). Which one?
"""

from itertools import product

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp


class TableGame:
    """The game on a joint table p (X, Y) with N candidates, enumerated: all X^N hands of candidates, no sampling.

    hands      (T, N): the candidates x_1 ... x_N of each hand
    weight     (Y, T): p(y) p(hand | y), the place of the true candidate averaged out
    posterior  (Y, T, N): p(place = i | hand, y), by Bayes' rule from p(hand | y, i) = p(x_i | y) prod_(j != i) p(x_j)
    """

    def __init__(self, joint, candidates):
        self.joint, self.n = np.asarray(joint, dtype=np.float64), candidates
        self.p_x, self.p_y = self.joint.sum(axis=1), self.joint.sum(axis=0)
        self.pmi = np.log(self.joint / np.outer(self.p_x, self.p_y))  # (X, Y)
        self.information = float((self.joint * self.pmi).sum())
        self.hands = np.array(list(product(range(len(self.p_x)), repeat=candidates)))
        self.unrelated = self.p_x[self.hands].prod(axis=1)  # (T,): prod_j p(x_j)
        conditional = (self.joint / self.p_y).T  # (Y, X): p(x | y)
        given_place = self.unrelated[:, None] * (conditional / self.p_x)[:, self.hands]  # (Y, T, N)
        mixture = given_place.mean(axis=2)  # p(hand | y)
        self.posterior = given_place / given_place.sum(axis=2, keepdims=True)
        self.weight = self.p_y[:, None] * mixture
        self.mixture_gap = float((self.weight * np.log(mixture / self.unrelated)).sum())

    def guess(self, critic):
        """(Y, T, N): softmax over the hand of the critic's scores; critic (X, Y)."""
        s = critic.T[:, self.hands]
        return np.exp(s - logsumexp(s, axis=2, keepdims=True))

    def loss(self, critic):
        """Expected InfoNCE loss of the critic, and its gradient (X, Y)."""
        q = self.guess(critic)
        loss = -(self.weight[:, :, None] * self.posterior * np.log(q)).sum()
        dscore = self.weight[:, :, None] * (q - self.posterior)  # expected minus observed
        gradient = np.array([[(d * (self.hands == x)).sum() for d in dscore] for x in range(len(self.p_x))])
        return float(loss), gradient

    def critic_gap(self, critic):
        """Mean divergence of the critic's guess from the true posterior."""
        return float((self.weight[:, :, None] * self.posterior * np.log(self.posterior / self.guess(critic))).sum())


def fit_critic(losses, start):
    """Critic (X, Y) that minimises the sum of losses, each critic -> (loss, gradient), from a given start."""

    def objective(flat):
        parts = [loss(flat.reshape(start.shape)) for loss in losses]
        return sum(value for value, _ in parts), sum(gradient for _, gradient in parts).ravel()

    options = {"gtol": 1e-13, "maxiter": 2000}
    return minimize(objective, start.ravel(), jac=True, method="BFGS", options=options).x.reshape(start.shape)


def gaussian_information(width, rho):
    """I(X; Y) = -(D / 2) log(1 - rho^2), in nats, of standard normal views of D entries with correlation rho."""
    return -0.5 * width * np.log1p(-(rho**2))


def gaussian_scores(x, y, rho):
    """The exact critic: log p(x_j | y_i) / p(x_j) at [..., i, j], for x, y (..., N, D).

    x given y is normal with mean rho y and variance v = 1 - rho^2, so each entry contributes
    -log(v) / 2 - (x - rho y)^2 / 2v + x^2 / 2  =  -log(v) / 2 + (rho x y - rho^2 (x^2 + y^2) / 2) / v.
    """
    v = 1 - rho**2
    lengths = (y**2).sum(axis=-1)[..., :, None] + (x**2).sum(axis=-1)[..., None, :]
    inner = y @ np.swapaxes(x, -1, -2)
    return -0.5 * x.shape[-1] * np.log(v) + (rho * inner - 0.5 * rho**2 * lengths) / v


def gaussian_game(candidates, width, rho, batches, seed=0):
    """log N - loss with the exact critic: (mean over batches of N x N scores, its standard error, sd of one batch)."""
    draw, values, chunk = np.random.default_rng(seed), [], max(1, (1 << 18) // candidates**2)
    for start in range(0, batches, chunk):
        shape = (min(chunk, batches - start), candidates, width)
        x = draw.standard_normal(shape)
        y = rho * x + np.sqrt(1 - rho**2) * draw.standard_normal(shape)
        s = gaussian_scores(x, y, rho)
        top = s.max(axis=-1, keepdims=True)
        log_sum = top[..., 0] + np.log(np.exp(s - top).sum(axis=-1))
        values.append(np.log(candidates) - (log_sum - np.diagonal(s, axis1=-2, axis2=-1)).mean(axis=-1))
    values = np.concatenate(values)
    spread = values.std(ddof=1)
    return values.mean(), spread / np.sqrt(batches), spread
