"""Runs of chapter 11: batches of known difficulty, and a scale that is trained on them."""

import numpy as np
from scipy.optimize import brentq

from nano_simcse.layers import normalize
from nano_simcse.losses import clip_loss
from nano_simcse.optim import Adam
from nano_simcse.parameters import Parameters

START = -np.log(0.07)  # CLIP's first log-scale


def noisy_pairs(count, width, noise, seed):
    """Unit rows (count, width): Gaussian queries, and keys that are the queries plus noise times a second Gaussian."""
    draw = np.random.default_rng(seed)
    queries, other = draw.standard_normal((2, count, width))
    return normalize(queries)[0], normalize(queries + noise * other)[0]


def share_wrong(queries, keys):
    """Share of rows and columns in which a stranger has the largest cosine."""
    c = queries @ keys.T
    right = np.arange(len(c))
    return (np.mean(c.argmax(axis=1) != right) + np.mean(c.argmax(axis=0) != right)) / 2


def best_scale(queries, keys, highest=1000.0):
    """Scale at which the gradient of the log-scale is 0, or `highest` where it is still negative there."""

    def slope(log_scale):
        return float(clip_loss(queries, keys, log_scale, max_scale=np.inf)[1]()[2])

    if slope(np.log(highest)) <= 0:
        return highest
    return float(np.exp(brentq(slope, 0.0, np.log(highest), xtol=1e-9)))


def train_scale(phases, ceiling=100.0, clamp=True, start=START, lr=0.15):
    """Learned scale after each step, Adam on log_scale alone, its rate falling to 0 in each phase.

    Adam without memory (betas 0, 0): each step follows the sign of the gradient. With the usual memory a gradient that
    fades exponentially, as in a solved batch, is held against the large ones of the start and the scale creeps.

    phases: list of (queries, keys, steps), one batch after the other. clamp: the parameter is cut back to
    log(ceiling) after each step; without it only the loss clips.
    """
    parameters = Parameters({"log_scale": ()}, dtype=np.float64)
    parameters["log_scale"][...] = start
    adam, scales = Adam(parameters, betas=(0.0, 0.0)), []
    for queries, keys, steps in phases:
        for step in range(steps):
            gradients = parameters.zeros_like()
            gradients["log_scale"][...] = clip_loss(queries, keys, parameters["log_scale"], max_scale=ceiling)[1]()[2]
            adam.step(gradients, lr * (1 - step / steps))
            if clamp:
                np.minimum(parameters.flat, np.log(ceiling), out=parameters.flat)
            scales.append(float(np.exp(parameters["log_scale"])))
    return np.array(scales)
