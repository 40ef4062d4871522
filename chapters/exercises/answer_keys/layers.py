"""Keys of the exercises on layers."""

import numpy as np

from chapters.exercises.grading import Case, Key, Slip
from nano_simcse import layers

SHAPES = ((4, 3), (2, 5), (6, 4))


def _cases(make):
    """One case per shape from make(rng, rows, width) -> arguments, factors."""

    def cases():
        found = []
        for k, (rows, width) in enumerate(SHAPES):
            arguments, factors = make(np.random.default_rng([31, k]), rows, width)
            found.append(Case(f"{rows} rows of {width}", arguments, factors))
        return found

    return cases


# ---- normalisation of rows ------------------------------------------------------------------------------------------


def _normalize_right(dy, x):
    return layers.normalize(x)[1](dy)


def _normalize_slip(kind):
    def run(dy, x):
        n = np.linalg.norm(x, axis=1, keepdims=True)
        y = x / n
        along = (dy * y).sum(axis=1, keepdims=True) * y
        return {
            "length": dy / n,
            "projection": dy - along,
            "raw": (dy - (dy * x).sum(axis=1, keepdims=True) * x) / n,
            "nothing": dy,
            "mixed": (dy - (dy * x).sum(axis=1, keepdims=True) * y) / n,
            "plus": (dy + along) / n,
        }[kind]

    return run


NORMALIZE = Key(
    ("dx",),
    _normalize_right,
    _cases(lambda rng, m, d: ((rng.standard_normal((m, d)), 3 * rng.standard_normal((m, d))), {})),
    (
        Slip("dy is divided by the length, but its part along the row must go: a longer row has the same direction.",
             _normalize_slip("length")),
        Slip("perpendicular to the row, as it must be, but of the wrong size: a row twice as long turns half as much.",
             _normalize_slip("projection")),
        Slip("the part along the row is measured with the raw row, not with one of length 1.", _normalize_slip("raw")),
        Slip("the Jacobian of the normalisation is missing: this is dy.", _normalize_slip("nothing")),
        Slip("one of the two rows in the projection has not been normalised.", _normalize_slip("mixed")),
        Slip("the part along the row is added where it must be taken away.", _normalize_slip("plus")),
    ),
)


# ---- dropout ------------------------------------------------------------------------------------------------------


def _dropout_cases():
    found = []
    for k, (p, shape) in enumerate(((0.1, (4, 6)), (0.25, (3, 5)), (0.4, (5, 4)))):
        rng = np.random.default_rng([32, k])
        keep = rng.random(shape) >= p
        keep[0, :2] = True, False
        found.append(Case(f"p = {p}", (rng.standard_normal(shape), keep, p), {"1/(1 - p)": 1 / (1 - p)}))
    return found


def _dropout_slip(factor):
    return lambda dy, keep, p: dy * factor(keep, p)


DROPOUT = Key(
    ("dx",),
    lambda dy, keep, p: layers.dropout(dy, keep, 1 / (1 - p))[1](dy),
    _dropout_cases,
    (
        Slip("the keep mask is missing: a unit that was dropped had no influence on the loss.",
             _dropout_slip(lambda keep, p: 1 / (1 - p))),
        Slip("both the keep mask and its scale are missing: this is dy.", _dropout_slip(lambda keep, p: 1.0)),
        Slip("the mask is used the wrong way round: True marks a unit that stays.",
             _dropout_slip(lambda keep, p: ~keep / (1 - p))),
        Slip("scaled by the rate of dropping; what matters is the chance to stay.",
             _dropout_slip(lambda keep, p: keep / p)),
        Slip("this is the scaling of test time in plain dropout; inverted dropout scales up.",
             _dropout_slip(lambda keep, p: keep * (1 - p))),
    ),
)


# ---- layer norm ---------------------------------------------------------------------------------------------------


def _layer_norm_right(dy, x, gamma, eps):
    return layers.layer_norm(x, gamma, np.zeros_like(gamma), eps)[1](dy)


def _layer_norm_slip(kind):
    def run(dy, x, gamma, eps):
        d = x.shape[1] - (kind == "unbiased")
        centred = x - x.mean(axis=1, keepdims=True)
        variance = (centred**2).sum(axis=1, keepdims=True) / d
        r = 1 / np.sqrt(variance + eps * (kind != "eps"))
        if kind == "eps outside":
            r = 1 / (np.sqrt(variance) + eps)
        xhat = centred * r
        g = dy if kind == "gamma" else dy * gamma
        mean, product = g.mean(axis=1, keepdims=True), (g * xhat).mean(axis=1, keepdims=True)
        dx = {
            "mean": r * (g - xhat * product),
            "variance": r * (g - mean),
            "both": r * g,
            "root": g - mean - xhat * product,
        }.get(kind, r * (g - mean - xhat * product))
        dgamma = dy * (x if kind == "raw" else xhat)
        fold = np.mean if kind == "average" else np.sum
        return dx, fold(dgamma, axis=0), fold(dy, axis=0)

    return run


LAYER_NORM = Key(
    ("dx", "dgamma", "dbeta"),
    _layer_norm_right,
    _cases(lambda rng, m, d: ((rng.standard_normal((m, d)), 2 * rng.standard_normal((m, d)) + 1,
                               1 + 0.5 * rng.standard_normal(d), 0.1), {})),
    (
        Slip("the way through the mean is missing: every x of a row moves the mean of that row.",
             _layer_norm_slip("mean")),
        Slip("the way through the variance is missing: every x of a row changes how far the row is scaled.",
             _layer_norm_slip("variance")),
        Slip("mean and variance are treated as constants; both depend on each x of the row.", _layer_norm_slip("both")),
        Slip("the division by the standard deviation is missing.", _layer_norm_slip("root")),
        Slip("gamma is missing: dy belongs to the output, after the scaling by gamma.", _layer_norm_slip("gamma")),
        Slip("gamma multiplies the normalised row, not x itself.", _layer_norm_slip("raw")),
        Slip("gamma and beta serve all rows, so their gradients add up; this is the average.",
             _layer_norm_slip("average")),
        Slip("the variance is divided by D - 1; layer norm divides by D.", _layer_norm_slip("unbiased")),
        Slip("eps is not used.", _layer_norm_slip("eps")),
        Slip("eps stands outside the root; it belongs to the variance.", _layer_norm_slip("eps outside")),
    ),
)


# ---- attention ----------------------------------------------------------------------------------------------------


def _attention_right(do, q, k, v):
    _, backward = layers.attention(q[None, None], k[None, None], v[None, None])
    return tuple(d[0, 0] for d in backward(do[None, None]))


def _attention_slip(kind):
    def run(do, q, k, v):
        root = q.shape[1] ** -0.5
        p, softmax_back = layers.softmax(q @ k.T * (1.0 if kind == "root" else root))
        dp = do @ v.T
        ds = {
            "row sum": p * dp,
            "no p": dp - (dp * p).sum(axis=1, keepdims=True),
            "axis": p * (dp - (dp * p).sum(axis=0, keepdims=True)),
            "no softmax": dp,
        }.get(kind, softmax_back(dp)) * (1.0 if kind == "root" else root)
        return ds @ k, (ds if kind == "dk" else ds.T) @ q, (p if kind == "dv" else p.T) @ do

    return run


def _attention_arguments(rng, t, d):
    return tuple(rng.standard_normal((4, t, d))), {"1/sqrt(K)": d**-0.5}


ATTENTION = Key(
    ("dq", "dk", "dv"),
    _attention_right,
    _cases(_attention_arguments),
    (
        Slip("the softmax couples the keys of a row: raising one score takes probability from all the others.",
             _attention_slip("row sum")),
        Slip("in the softmax's backward the probability in front of the bracket is missing.", _attention_slip("no p")),
        Slip("the softmax ran over the keys, so its sum runs along the rows; here it runs down the columns.",
             _attention_slip("axis")),
        Slip("the backward of the softmax is missing.", _attention_slip("no softmax")),
        Slip("a key collects from every query that looked at it: which index is summed over?", _attention_slip("dk"),
             ("dk",)),
        Slip("a value collects from every query that looked at it: which index is summed over?", _attention_slip("dv"),
             ("dv",)),
        Slip("the scores are not divided by sqrt(K), forward and backward.", _attention_slip("root")),
    ),
)


KEYS = {
    "normalize_backward": NORMALIZE,
    "dropout_backward": DROPOUT,
    "layer_norm_backward": LAYER_NORM,
    "attention_backward": ATTENTION,
}
