"""Keys of the two exercises on a square table of scores: the bound on information, CLIP."""

import math

import numpy as np
from scipy.special import logsumexp
from scipy.special import softmax as softmax_of

from chapters.exercises.grading import Case, Key, Slip
from nano_simcse.layers import normalize
from nano_simcse.mutual_information import nce_mi_estimate

LARGE = "Subtract the largest score of a row before the exponential."


# ---- nce_mi_estimate ------------------------------------------------------------------------------------------------


def _information_slip(kind):
    def run(S):
        n = len(S)
        others = np.where(np.eye(n, dtype=bool), -np.inf, S)
        loss = (logsumexp(S, axis=1) - S.diagonal()).mean()
        return {
            "loss": loss,
            "no log N": -loss,
            "columns": math.log(n) - (logsumexp(S, axis=0) - S.diagonal()).mean(),
            "N - 1": math.log(n - 1) - loss,
            "denominator": math.log(n) - (logsumexp(others, axis=1) - S.diagonal()).mean(),
            "bits": (math.log(n) - loss) / math.log(2),
            "sum": math.log(n) - n * loss,
            "mean first": 2 * math.log(n) - logsumexp(logsumexp(S, axis=1) - S.diagonal()),
        }[kind]

    return run


def _information_cases():
    found = []
    for k, n in enumerate((4, 7, 12)):
        s = np.random.default_rng([51, k]).standard_normal((n, n)) + 2 * np.eye(n)
        found.append(Case(f"{n} contexts", (s,)))
    return [*found, Case("scores in the thousands", (1000 * found[0].arguments[0],), hint=LARGE)]


INFORMATION = Key(
    ("estimate",),
    nce_mi_estimate,
    _information_cases,
    (
        Slip("this is the loss; a guess costs log N, and what the critic saves of it is information.",
             _information_slip("loss")),
        Slip("log N is missing: what does the critic save against a guess?", _information_slip("no log N")),
        Slip("the softmax runs down the columns; each row is one game.", _information_slip("columns")),
        Slip("the true one is a candidate as well: N of them, not N - 1.", _information_slip("N - 1")),
        Slip("the true pair is missing in the denominator.", _information_slip("denominator")),
        Slip("this is in bits; asked are nats.", _information_slip("bits")),
        Slip("the losses of the rows are added up; the bound takes their mean, the factor 1/N is missing.",
             _information_slip("sum")),
        Slip("the mean is taken before the logarithm; every row has its own loss.", _information_slip("mean first")),
    ),
    advice="Try a table of zeros: the critic knows nothing.",
)


# ---- clip_loss_grad -------------------------------------------------------------------------------------------------


def _clip(kind=""):
    def run(Qn, Pn, t, max_scale):
        n = len(Qn)
        s = math.exp(t) if kind == "ceiling" else min(math.exp(t), max_scale)
        z = s * Qn @ Pn.T
        rows, columns = softmax_of(z, axis=1), softmax_of(z, axis=0)
        a = logsumexp(z, axis=1) - z.diagonal()
        b = logsumexp(z, axis=0) - z.diagonal()
        target = np.eye(n)
        g, loss = (rows + columns - 2 * target) / (2 * n), (a + b).mean() / 2
        if kind == "rows":
            g, loss = (rows - target) / n, a.mean()
        if kind == "columns":
            g, loss = (columns - target) / n, b.mean()
        if kind == "own":
            g = (rows + columns) / (2 * n)
        if kind == "twice rows":
            g = (rows + rows.T - 2 * target) / (2 * n)
        dq, dp, dt = s * g @ Pn, s * g.T @ Qn, (g * z).sum()
        if kind == "jacobian":
            dq, dp = normalize(Qn)[1](dq), normalize(Pn)[1](dp)
        if kind == "turned":
            dp = s * g @ Qn
        if kind == "role":
            dp = s * g.diagonal()[:, None] * Qn
        if kind == "ds":
            dt = dt / s
        return loss, dq, dp, 0.0 if math.exp(t) > max_scale and kind not in ("gate", "ceiling") else dt

    return run


def _clip_cases():
    found = []
    for k, (n, t, ceiling) in enumerate(((3, 0.7, 100.0), (5, 1.5, 100.0), (4, -0.3, 50.0))):
        q, p = (normalize(x)[0] for x in np.random.default_rng([52, k]).standard_normal((2, n, 4)))
        scale = math.exp(t)
        found.append(Case(f"{n} pairs, scale {scale:.2f}", (q, p, t, ceiling), {"1/N": 1 / n, "the scale": scale}))
    q, p = (normalize(x)[0] for x in np.random.default_rng(53).standard_normal((2, 4, 3)))
    found.append(Case("a scale above the ceiling", (q, p, 3.0, 5.0), {"1/N": 1 / 4, "the scale": 5.0},
                      "Where the scale is cut off, what happens when t moves a little?"))
    q, p = (normalize(x)[0] for x in np.random.default_rng(54).standard_normal((2, 4, 3)))
    return [*found, Case("a scale of 3000", (q, p, 8.0, 1e9), {"1/N": 1 / 4, "the scale": math.exp(8)}, LARGE)]


CLIP = Key(
    ("loss", "dQn", "dPn", "dt"),
    _clip(),
    _clip_cases,
    (
        Slip("only the rows are asked; the columns are the other half of the loss.", _clip("rows")),
        Slip("only the columns are asked; the rows are the other half of the loss.", _clip("columns")),
        Slip("the column softmax is not the row softmax transposed: its denominators are sums down the columns.",
             _clip("twice rows"), ("dQn", "dPn", "dt")),
        Slip("the pull of the positive is missing: probability minus target.", _clip("own"), ("dQn", "dPn", "dt")),
        Slip("a Jacobian of the normalisation too many: Qn and Pn are the arguments, whatever made them.",
             _clip("jacobian"), ("dQn", "dPn")),
        Slip("dL/dlogits must be transposed here.", _clip("turned"), ("dPn",)),
        Slip("a row of Pn is also a negative of all the other queries; only its own query is counted.", _clip("role"),
             ("dPn",)),
        Slip("this is the derivative by the scale; the parameter is its logarithm.", _clip("ds"), ("dt",)),
        Slip("right below the ceiling; above it the scale does not move with t.", _clip("gate"), ("dt",)),
        Slip("the ceiling max_scale is not applied.", _clip("ceiling")),
    ),
)

KEYS = {"nce_mi_estimate": INFORMATION, "clip_loss_grad": CLIP}
