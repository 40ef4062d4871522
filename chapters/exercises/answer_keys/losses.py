"""Keys of the exercises on InfoNCE: its gradient, its temperature, the toy batch."""

import numpy as np
from scipy.special import logsumexp
from scipy.special import softmax as softmax_of

from chapters.exercises.grading import Case, Key, Slip
from nano_simcse.layers import normalize
from nano_simcse.losses import info_nce

LARGE = "Subtract the largest logit of a row before the exponential."


def _cross_entropy(z):
    return (logsumexp(z, axis=1) - z.diagonal()).mean()


# ---- infonce_grad ---------------------------------------------------------------------------------------------------


def _infonce_right(Q, P, tau):
    loss, backward = info_nce(Q, P, tau)
    return loss, *backward()


def _infonce_slip(kind):
    def run(Q, P, tau):
        n = len(Q)
        (q, q_back), (p, p_back) = normalize(Q), normalize(P)
        if kind == "dot":
            q, p, q_back, p_back = Q, P, (lambda d: d), (lambda d: d)
        z = q @ p.T / tau
        a = softmax_of(z, axis=0 if kind == "columns" else 1)
        loss = _cross_entropy(z.T if kind == "columns" else z)
        if kind == "denominator":
            others = np.where(np.eye(n, dtype=bool), -np.inf, z)
            a, loss = softmax_of(others, axis=1), (logsumexp(others, axis=1) - z.diagonal()).mean()
        g = (a - (0 if kind == "own" else np.eye(n))) / (n * tau)
        dq = g @ p
        dp = {"role": g.diagonal()[:, None] * q, "turned": g @ q}.get(kind, g.T @ q)
        if kind == "pull only":
            dq, dp = g.diagonal()[:, None] * p, g.diagonal()[:, None] * q
        if kind == "jacobian":
            return loss, dq, dp
        if kind == "length":
            return loss, dq / np.linalg.norm(Q, axis=1, keepdims=True), dp / np.linalg.norm(P, axis=1, keepdims=True)
        dq, dp = q_back(dq), p_back(dp)
        if kind == "projection":
            dq, dp = dq * np.linalg.norm(Q, axis=1, keepdims=True), dp * np.linalg.norm(P, axis=1, keepdims=True)
        return loss, dq, dp

    return run


def _infonce_cases():
    found = []
    for k, (n, d, tau) in enumerate(((3, 4, 0.5), (5, 3, 0.2), (4, 6, 1.7))):
        q, p = 2 * np.random.default_rng([41, k]).standard_normal((2, n, d))
        found.append(Case(f"{n} pairs, tau = {tau}", (q, p, tau), {"1/N": 1 / n, "1/tau": 1 / tau}))
    q, p = np.random.default_rng(42).standard_normal((2, 6, 3))
    found.append(Case("tau = 0.0003", (q, p, 0.0003), {"1/N": 1 / 6, "1/tau": 1 / 0.0003}, LARGE))
    return found


INFONCE = Key(
    ("loss", "dQ", "dP"),
    _infonce_right,
    _infonce_cases,
    (
        Slip("the Jacobian of the normalisation is missing: a gradient of the raw row is perpendicular to that row.",
             _infonce_slip("jacobian"), ("dQ", "dP")),
        Slip("half of the normalisation's Jacobian is missing: the part along the row itself must go.",
             _infonce_slip("length"), ("dQ", "dP")),
        Slip("half of the normalisation's Jacobian is missing: the length of the raw row.",
             _infonce_slip("projection"), ("dQ", "dP")),
        Slip("a row of P is also a negative of all the other queries; only its own query is counted.",
             _infonce_slip("role"), ("dP",)),
        Slip("only the own partner is counted; the negatives of the row push too.",
             _infonce_slip("pull only"), ("dQ", "dP")),
        Slip("dL/dlogits has rows for queries; here it must be read by columns, that is transposed.",
             _infonce_slip("turned"), ("dP",)),
        Slip("the pull of the positive is missing: a softmax's cross-entropy has probability minus target.",
             _infonce_slip("own"), ("dQ", "dP")),
        Slip("the softmax runs down the columns; every query chooses among the rows of P.", _infonce_slip("columns")),
        Slip("the rows are not scaled to length 1: the logits are cosines over tau.", _infonce_slip("dot")),
        Slip("the positive is missing in the denominator.", _infonce_slip("denominator")),
    ),
)


# ---- temperature_grad ---------------------------------------------------------------------------------------------


def _temperature_right(cosines, tau):
    p = softmax_of(cosines / tau, axis=1)
    return _cross_entropy(cosines / tau), -((p * cosines).sum(axis=1) - cosines.diagonal()).mean() / tau**2


def _temperature_slip(kind):
    def run(cosines, tau):
        axis = 0 if kind == "columns" else 1
        p = softmax_of(cosines / (1 if kind == "tau" else tau), axis=axis)
        expected, own = (p * cosines).sum(axis=axis).mean(), cosines.diagonal().mean()
        z = cosines / (1 if kind == "tau" else tau)
        slope = {"positive": -expected / tau**2, "negatives": own / tau**2, "inverse": expected - own,
                 "log": -(expected - own) / tau}.get(kind, -(expected - own) / tau**2)
        return _cross_entropy(z.T if kind == "columns" else z), slope

    return run


def _temperature_cases():
    found = []
    for k, (n, tau) in enumerate(((3, 0.5), (5, 0.07), (4, 2.0))):
        c = np.tanh(np.random.default_rng([43, k]).standard_normal((n, n)))
        found.append(Case(f"{n} rows, tau = {tau}", (c, tau), {"1/N": 1 / n, "1/tau": 1 / tau}))
    c = np.tanh(np.random.default_rng(44).standard_normal((6, 6)))
    found.append(Case("tau = 0.0005", (c, 0.0005), {"1/N": 1 / 6, "1/tau": 1 / 0.0005}, LARGE))
    return found


TEMPERATURE = Key(
    ("loss", "dtau"),
    _temperature_right,
    _temperature_cases,
    (
        Slip("the logit of the positive depends on tau as well.", _temperature_slip("positive"), ("dtau",)),
        Slip("the log of the denominator depends on tau as well.", _temperature_slip("negatives"), ("dtau",)),
        Slip("this is the derivative by 1 / tau; asked is the one by tau.", _temperature_slip("inverse"), ("dtau",)),
        Slip("this is the derivative by log tau; asked is the one by tau.", _temperature_slip("log"), ("dtau",)),
        Slip("the softmax runs down the columns; every row is one question.", _temperature_slip("columns")),
        Slip("the cosines are not divided by tau before the softmax.", _temperature_slip("tau")),
    ),
)


# ---- profile_grad -------------------------------------------------------------------------------------------------


def _profile_right(U, keep_a, keep_b, p, tau):
    loss, backward = info_nce(U * keep_a / (1 - p), U * keep_b / (1 - p), tau)
    da, db = backward()
    return loss, (da * keep_a + db * keep_b) / (1 - p)


def _profile_slip(kind):
    def run(U, keep_a, keep_b, p, tau):
        loss, backward = info_nce(U * keep_a / (1 - p), U * keep_b / (1 - p), tau)
        da, db = backward()
        first, second = da * keep_a, db * keep_b
        total = {"first": first, "second": second, "masks": da + db, "swapped": da * keep_b + db * keep_a,
                 "both": (da + db) * keep_a * keep_b, "difference": first - second}[kind]
        return loss, total / (1 - p)

    return run


def _profile_cases():
    found = []
    for k, (p, n, d, tau) in enumerate(((0.5, 3, 4, 0.5), (0.25, 4, 5, 0.2), (0.4, 5, 6, 1.3))):
        rng = np.random.default_rng([45, k])
        masks = (rng.random((2, n, d)) >= p) | (np.arange(d) < 2)  # two units of every view are always there
        factors = {"1/N": 1 / n, "1/tau": 1 / tau, "1/(1 - p)": 1 / (1 - p)}
        found.append(Case(f"p = {p}", (rng.standard_normal((n, d)), *masks, p, tau), factors))
    return found


PROFILE = Key(
    ("loss", "dU"),
    _profile_right,
    _profile_cases,
    (
        Slip("a profile is in both views; only its place among the queries is counted.", _profile_slip("first")),
        Slip("a profile is in both views; only its place among the keys is counted.", _profile_slip("second")),
        Slip("the keep masks are missing on the way back: a dropped unit had no influence.", _profile_slip("masks")),
        Slip("each view's gradient goes back through the mask of the other view.", _profile_slip("swapped")),
        Slip("each view has a mask of its own; the gradients are not masked by both.", _profile_slip("both")),
        Slip("the contributions of the two views add up.", _profile_slip("difference")),
    ),
    advice="nano_simcse.losses.info_nce gives the gradients of both views; what did each view do to U?",
)


KEYS = {
    "infonce_grad": INFONCE,
    "temperature_grad": TEMPERATURE,
    "profile_grad": PROFILE,
}
