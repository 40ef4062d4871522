"""Transfer probe: what a linear classifier can read from frozen embeddings (the protocol of SentEval).

Multinomial logistic regression. Letters: n rows x_i (D,), y_i one of C classes, scores S = X W + b, W (D, C), b (C,).

    J(W, b) = (1/n) sum_i [ log sum_c exp S_ic - S_i,y_i ] + (lambda / 2) |W|^2

    P = softmax of each row of S,  Y = one row per example with 1 at its class
    dS = (P - Y) / n        dW = X^T dS + lambda W        db = sum of the rows of dS

J is convex, and strictly so in W, so the classifier found does not depend on where the search starts. b has no
penalty: with lambda large the classes are predicted as often as they occur.

Inputs are centred and divided by one common number, so that the training rows have mean square length D. One lambda
then means the same for every encoder, and the geometry of the cloud stays as the encoder made it.

Sources: Conneau and Kiela 2018, arXiv 1803.05449 (SentEval: k-fold cross-validation, lambda chosen inside each training
fold); Gao et al. 2021, appendix (transfer tasks).
"""

from collections import Counter

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp
from tqdm import tqdm

from .errors import InputError
from .inputs import members, require_count, require_number
from .progress import hidden

STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # lambda
INNER = 5  # one part in INNER of a training fold chooses lambda


def logistic_loss(parameters, x, y, l2):
    """J and its gradient for the flat float64 parameters of W (D, C), then b (C,).

    x (n, D) float64; y (n,) integers in [0, C); l2: lambda >= 0. Returns (float, gradient like parameters).
    """
    n, width = x.shape
    table = parameters.reshape(width + 1, -1)
    w, b = table[:-1], table[-1]
    scores = x @ w + b
    log_norm = logsumexp(scores, axis=1)
    rows = np.arange(n)
    value = (log_norm - scores[rows, y]).mean() + 0.5 * l2 * (w * w).sum()
    ds = np.exp(scores - log_norm[:, None])  # P
    ds[rows, y] -= 1
    ds /= n
    gradient = np.empty_like(table)
    np.matmul(x.T, ds, out=gradient[:-1])
    gradient[:-1] += l2 * w
    gradient[-1] = ds.sum(axis=0)
    return float(value), gradient.reshape(parameters.shape)


def fit_logistic(x, y, classes, l2):
    """(W (D, C), b (C,)) that minimise J, by L-BFGS-B from zero, to 1e-6 in every entry of the gradient.

    The search may end earlier where float64 finds no lower value. Arguments as for `logistic_loss`; classes: C.
    """
    start = np.zeros((x.shape[1] + 1) * classes)
    options = {"maxiter": 2000, "maxfun": 4000, "gtol": 1e-6, "ftol": 0.0}
    found = minimize(logistic_loss, start, (x, y, l2), method="L-BFGS-B", jac=True, options=options)
    table = found.x.reshape(x.shape[1] + 1, classes)
    return table[:-1], table[-1]


def stratified_folds(y, folds, rng):
    """The fold (n,) of each row: rows are dealt out in turn, class by class, in random order within a class.

    y (n,) integers; rng: numpy Generator. Of every class, and of all rows together, two folds get numbers that differ
    by at most one.
    """
    order = rng.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    fold = np.empty(len(y), int)
    fold[order] = np.arange(len(y)) % folds
    return fold


def probe(x, labels, folds=10, seed=0, strengths=STRENGTHS, progress=None):
    """Accuracy of the linear classifier on rows it has not seen, by stratified cross-validation.

    For each fold the others are the training rows. lambda is chosen among `strengths` on one part in INNER of them
    (best accuracy, of equals the strongest penalty) with a classifier fitted on the rest; one fitted on all training
    rows then predicts the fold. Equal arguments give equal results.

    Args: x (n, D) embeddings; labels: n hashable values, a list or an array; strengths: a list or an array of lambdas;
    progress: None shows a bar on a terminal.
    Returns: {"count": n, "classes": {label: rows}, "folds", "seed", "accuracy", "sd", "majority", "fold_accuracy",
    "l2"}: accuracies in percent, mean and sample standard deviation over the folds, which share training rows, so
    that sd / sqrt(folds) is too small an error of the mean; majority is the share of the largest class. One sentence
    on two rows may be seen in training and asked in the test; remove repetitions before.
    Raises: InputError for one class, a class with fewer rows than folds (4 at least), and bad arguments.
    """
    y, counts = check_labels(labels, folds, seed)
    x = np.asarray(x, np.float64)
    if x.ndim != 2 or len(x) != len(y) or not x.shape[1]:
        raise InputError(f"embeddings of shape {x.shape} do not fit {len(y)} labels; expected ({len(y)}, D)")
    if not np.isfinite(x).all():
        raise InputError("embeddings hold NaN or infinity; expected finite numbers")
    strengths = members("strengths", strengths, "a list of numbers")
    if not strengths:
        raise InputError("strengths are []; expected at least one number")
    for i, strength in enumerate(strengths):
        require_number(f"strengths[{i}]", strength, positive=True)
    rng = np.random.default_rng(seed)
    fold_of, hits, chosen = stratified_folds(y, folds, rng), [], []
    for fold in tqdm(range(folds), desc="probe", unit="fold", disable=hidden(progress),
                     delay=2, leave=False):  # fmt: skip
        train, test = fold_of != fold, fold_of == fold
        l2 = float(_choose(x[train], y[train], len(counts), strengths, rng))
        hits.append(_accuracy(x[train], y[train], x[test], y[test], len(counts), l2))
        chosen.append(l2)
    return {
        "count": len(y),
        "classes": counts,
        "folds": int(folds),
        "seed": int(seed),
        "accuracy": float(np.mean(hits)),
        "sd": float(np.std(hits, ddof=1)),
        "majority": 100 * max(counts.values()) / len(y),
        "fold_accuracy": hits,
        "l2": chosen,
    }


def check_labels(labels, folds, seed=0):
    """(class of each row as an integer (n,), {label: rows}), or InputError where `probe` could not work with them."""
    for name, value, least in (("folds", folds, 2), ("seed", seed, 0)):
        require_count(name, value, least)
    # numbers of NumPy as those of Python, which JSON takes as keys
    labels = [
        label.item() if isinstance(label, np.generic) else label
        for label in members("labels", labels, "a list of labels")
    ]
    counts = dict(Counter(labels))
    if len(counts) < 2:
        raise InputError(f"the labels name {len(counts)} class; a classifier needs at least 2")
    label, rows = min(counts.items(), key=lambda item: item[1])
    needed = max(folds, 4)  # of which training keeps two, one to choose lambda by and one to learn from
    if rows < needed:
        raise InputError(
            f"class {str(label)[:60]!r} has {rows} row{'' if rows == 1 else 's'}; "
            f"{folds} folds need at least {needed} of each class"
        )
    number = {label: i for i, label in enumerate(counts)}
    return np.array([number[label] for label in labels]), counts


def _choose(x, y, classes, strengths, rng):
    """lambda of the best accuracy on one part of the rows, the strongest of those that tie."""
    parts = min(INNER, np.bincount(y).min())
    held = stratified_folds(y, parts, rng) == 0
    accuracy = {l2: _accuracy(x[~held], y[~held], x[held], y[held], classes, l2) for l2 in strengths}
    return max(accuracy, key=lambda l2: (accuracy[l2], l2))


def _accuracy(x, y, x_test, y_test, classes, l2):
    """Percent of the test rows that a classifier fitted on (x, y) gets right."""
    mean = x.mean(axis=0)
    # Rows that are all alike have no scale; whatever it is, the classifier is left with b.
    scale = np.sqrt(((x - mean) ** 2).mean()) or 1.0
    w, b = fit_logistic((x - mean) / scale, y, classes, l2)
    return float(100 * np.mean(((x_test - mean) / scale @ w + b).argmax(axis=1) == y_test))
