"""Two noisy views of a hidden meaning, and the smallest encoder that can collapse on them.

A meaning is 6 numbers. A view is a fixed 6 x 32 mixture of it plus noise of its own in each of the 32 entries. The
encoder is h = x W + b with W (32, 6); embeddings are h / |h|. Because of the bias one point for everything is within
reach: b, with nothing of W left across it.
"""

import numpy as np

from nano_simcse.evaluation import recall_at_k
from nano_simcse.geometry import alignment, uniformity
from nano_simcse.layers import linear, normalize
from nano_simcse.losses import info_nce, triplet
from nano_simcse.optim import SGD, Adam
from nano_simcse.parameters import Parameters

MEANING, ENTRIES, WIDTH, BATCH, TRAIN, TEST = 6, 32, 6, 128, 2000, 500


def views(seed=0, noise=0.3):
    """(training pairs (2, 2000, 32), test pairs (2, 500, 32)); row i of the two views has one meaning."""
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((MEANING, ENTRIES)) / np.sqrt(MEANING)
    x = rng.standard_normal((TRAIN + TEST, MEANING)) @ mixing
    both = x + noise * rng.standard_normal((2, *x.shape))
    return both[:, :TRAIN], both[:, TRAIN:]


def start(seed=0, bias=0.5):
    """A random encoder: Parameters weight (32, 6) and bias (6,)."""
    rng = np.random.default_rng([seed, 1])
    parameters = Parameters({"weight": (ENTRIES, WIDTH), "bias": (WIDTH,)}, dtype=np.float64)
    parameters["weight"] = rng.standard_normal((ENTRIES, WIDTH)) / np.sqrt(ENTRIES)
    parameters["bias"] = bias * rng.standard_normal(WIDTH)
    return parameters


def encode(parameters, x):
    """Embeddings (n, 6), not normalised."""
    return x @ parameters["weight"] + parameters["bias"]


# ---- losses: (first, second) -> (loss, backward) ---------------------------------------------------------------


def pull(first, second):
    """Mean squared distance of paired unit rows, the loss that only attracts.

    L = mean |u_i - v_i|^2,   dL/du_i = 2 (u_i - v_i) / B = -dL/dv_i,   then the Jacobian of the normalisation.
    """
    u, u_back = normalize(first)
    v, v_back = normalize(second)
    du = 2 * (u - v) / len(u)
    return ((u - v) ** 2).sum(axis=1).mean(), lambda: (u_back(du), v_back(-du))


def quiz(first, second):
    """InfoNCE at tau 0.1."""
    return info_nce(first, second, 0.1)


def next_row(margin=1.0):
    """Triplet loss whose negative is the second view of the following row: random, as rows are."""

    def loss_of(first, second):
        loss, back = triplet(first, second, np.roll(second, -1, axis=0), margin)

        def backward():
            da, dp, dn = back()
            return da, dp + np.roll(dn, 1, axis=0)

        return loss, backward

    return loss_of


def dead_share(first, second, margin=1.0):
    """Share of the triplets (i, i, j != i) of a batch whose margin is met: no gradient."""
    u, v = normalize(first)[0], normalize(second)[0]
    d = np.sqrt(np.maximum(2 - 2 * u @ v.T, 0))
    off = ~np.eye(len(u), dtype=bool)
    return float(np.mean((d + np.diag(d)[:, None] * -1 >= margin)[off]))


# ---- training and measuring ------------------------------------------------------------------------------------


def recalls(first, second):
    """Recall@1 of the right second view, percent, ties counted as misses: by cosine in float32, by cosine in float64,
    and by the squared distance of differences in float64."""
    gold = np.arange(len(first))
    found = []
    for dtype in (np.float32, np.float64):
        u, v = normalize(first.astype(dtype))[0], normalize(second.astype(dtype))[0]
        found.append(recall_at_k(u @ v.T, gold))
    distance = ((u[:, None] - v) ** 2).sum(axis=2)
    return np.array([*found, recall_at_k(-distance, gold)])


def across(parameters):
    """|W P| / |b| with P the projection off the bias: the size of the cloud, to first order."""
    direction = parameters["bias"] / np.linalg.norm(parameters["bias"])
    w = parameters["weight"]
    return np.linalg.norm(w - np.outer(w @ direction, direction)) / np.linalg.norm(parameters["bias"])


def state(parameters, test):
    """alignment, uniformity, the three recalls, |b| and |W P| / |b| on test pairs (8 numbers with the step first)."""
    first, second = encode(parameters, test[0]), encode(parameters, test[1])
    return [
        alignment(first, second),
        uniformity(first),
        *recalls(first, second),
        np.linalg.norm(parameters["bias"]),
        across(parameters),
    ]


COLUMNS = ("step", "alignment", "uniformity", "cos f32", "cos f64", "differences", "|b|", "|WP|/|b|")


def train(loss_of, train_pairs, test_pairs, steps, lr, optimiser=Adam, every=25, seed=0):
    """Train from start(seed); returns (parameters, records (k, 8)) with COLUMNS, one row every `every` steps."""
    parameters = start(seed)
    opt, rng, records = optimiser(parameters), np.random.default_rng([seed, 2]), []
    for step in range(steps + 1):
        if step % every == 0:
            records.append([step, *state(parameters, test_pairs)])
        chosen = rng.choice(TRAIN, BATCH, replace=False)
        h, back = linear(
            np.concatenate([train_pairs[0][chosen], train_pairs[1][chosen]]), parameters["weight"], parameters["bias"]
        )
        dh = np.concatenate(loss_of(h[:BATCH], h[BATCH:])[1]())
        gradients = parameters.zeros_like()
        _, gradients["weight"], gradients["bias"] = back(dh)
        opt.step(gradients, lr)
    return parameters, np.array(records)


def collapse(train_pairs, test_pairs, seed=0, steps=1100, every=25):
    """Pull-only training by plain gradient descent, every pair shrinking by a factor each step."""
    return train(pull, train_pairs, test_pairs, steps, 1.0, SGD, every, seed)


def shrunk(test_pairs, exponents, seed=0):
    """No training: the random encoder with 10^-e of its weight across the bias.

    Returns (rows (exponents, 5), recall of W P itself): alignment, three recalls, and 1 - mean cosine of the first
    views. The last as a variance, half the mean |u_i - u_j|^2 over i != j: 1 - cos itself is blind below 1e-16.
    """
    parameters = start(seed)
    direction = parameters["bias"] / np.linalg.norm(parameters["bias"])
    w = parameters["weight"] - np.outer(parameters["weight"] @ direction, direction)
    rows = []
    for e in exponents:
        parameters["weight"] = w * 10.0**-e
        first, second = encode(parameters, test_pairs[0]), encode(parameters, test_pairs[1])
        spread = normalize(first)[0].var(axis=0, ddof=1).sum()
        rows.append([alignment(first, second), *recalls(first, second), spread])
    return np.array(rows), recall_at_k(-(((test_pairs[0] @ w)[:, None] - test_pairs[1] @ w) ** 2).sum(axis=2),
                                       np.arange(TEST))
