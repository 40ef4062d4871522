"""Repairs of an embedding cloud that need no training: centring and whitening, fitted once and applied to every row.

    centre    z = x - mu                          mu (D,) the mean of the rows fitted on
    whiten    z = (x - mu) W                      W = U Lambda^(-1/2)   (D, K)

where Sigma = U Lambda U^T is the covariance of those rows, (1/n) sum (x - mu)(x - mu)^T, eigenvalues in falling order,
and the first K columns are kept. The fitted rows then have mean 0 and covariance I. Directions are eigenvectors, so
dropping the last ones (K < D) loses the least variance.

Which directions exist: n rows vary in at most n - 1, and a degenerate cloud in fewer. Along the others the eigenvalue
is rounding noise, and Lambda^(-1/2) would blow it up to unit size; they are left out. Kept are eigenvalues above

    TOLERANCE times the largest, and
    (NOISE eps max |x|)^2            eps the relative precision of the numbers x are stored in

Sources: Su et al. 2021, arXiv 2103.15316 (whitening of sentence embeddings, with the choice of K); Huang et al. 2021,
arXiv 2104.01767. The mathematics and what it cannot do: chapter 6.
"""

from dataclasses import dataclass

import numpy as np

from .backend import to_host
from .errors import InputError
from .inputs import listed, require_whole

KINDS = ("centre", "whiten", "linear")
FITTED = ("whiten", "centre")  # "linear" is any other affine map, from a folder that does not say how it was found
VERBS = {"whiten": "whitening", "centre": "centring"}
ENOUGH = 5  # rows a coordinate that a whitening should be fitted to
TOLERANCE = 1e-10  # eigenvalue, relative to the largest; its square root, 1e-5, is the ratio of the lengths
NOISE = 100  # two libraries compute an embedding to tens of eps; a direction of that size is no property of the text


@dataclass(frozen=True, eq=False)
class Transform:
    """A fitted map z = (x - mean) @ matrix of rows x (n, D) to rows z (n, K); without a matrix z = x - mean, K = D.

    kind: one of KINDS, a label; mean (D,) and matrix (D, K) or None: copied to float64 and made read-only, because
    a fingerprint and a saved file vouch for them. Raises InputError where they do not fit together or are not finite.
    """

    kind: str
    mean: np.ndarray
    matrix: np.ndarray | None = None

    def __post_init__(self):
        if self.kind not in KINDS:
            raise InputError(f"kind {self.kind!r:.60} is not one of {', '.join(KINDS)}")
        if (self.matrix is None) != (self.kind == "centre"):
            raise InputError(f"kind {self.kind!r} {'needs a' if self.matrix is None else 'has no'} matrix")
        for name, dimensions in (("mean", 1), ("matrix", 2)):
            if (values := getattr(self, name)) is not None:
                object.__setattr__(self, name, _frozen(name, values, dimensions))
        if self.matrix is not None and len(self.matrix) != len(self.mean):
            raise InputError(f"matrix has shape {self.matrix.shape}; expected {len(self.mean)} rows, as many as mean")

    @property
    def inputs(self):
        """D, the width of the rows it takes."""
        return len(self.mean)

    @property
    def outputs(self):
        """K, the width of the rows it gives."""
        return self.inputs if self.matrix is None else self.matrix.shape[1]

    def tobytes(self):
        """Its numbers as bytes, for a fingerprint: the kind is a label and changes no embedding."""
        return self.mean.tobytes() + (b"" if self.matrix is None else self.matrix.tobytes())

    def __call__(self, x):
        """(x - mean) @ matrix for x (n, D), on the host: (n, K), computed in float64, given in the precision of x.

        Raises InputError for another width.
        """
        x = np.asarray(to_host(x))
        if x.ndim != 2 or x.shape[1] != self.inputs:
            raise InputError(f"embeddings have shape {x.shape}; the transform takes rows of width {self.inputs}")
        z = x - self.mean  # float64, before the product: the mean may be far larger than what is left
        z = z if self.matrix is None else z @ self.matrix
        return z.astype(x.dtype) if x.dtype.kind == "f" else z


def fit_transform(embeddings, kind="whiten", rank=None):
    """The Transform that centres or whitens `embeddings`, by the formulas above, in float64.

    embeddings (n, D): rows as the encoder reads them, before any scaling to length 1; n >= 2.
    kind: "centre" or "whiten"; rank: K, the leading directions to keep; None: all the cloud has. The largest
    coordinate of every kept direction is positive, so that one cloud gives one matrix.
    Raises InputError for another kind, rows that are not finite numbers, fewer than two rows, and for whitening a rank
    that is not a whole number from 1 to the rank of the cloud; and for a cloud that is a single point.
    """
    x = np.asarray(to_host(embeddings))
    if x.ndim != 2 or not x.shape[1] or x.dtype.kind not in "fiu":
        raise InputError(f"embeddings have shape {x.shape} and type {x.dtype}; expected rows of numbers")
    require_fit(kind, rank, *x.shape)
    finite = np.isfinite(x).all(axis=1)
    if not finite.all():
        raise InputError(f"row {int(finite.argmin())} of the embeddings holds NaN or infinity")
    eps = np.finfo(x.dtype if x.dtype.kind == "f" else np.float64).eps
    noise = NOISE * float(eps) * float(np.abs(x).max())
    x = x.astype(np.float64)
    mean = x.mean(axis=0)
    mean += (x - mean).mean(axis=0)  # a sum over many rows gathers rounding: equal rows would seem to vary
    if float(np.abs(x - mean).max()) <= noise:
        raise InputError(f"the {len(x)} embeddings are one single point; {VERBS[kind]} needs a cloud that varies")
    if kind == "centre":
        return Transform("centre", mean)
    deviations, directions = _principal(x - mean)
    available = int((deviations > max(np.sqrt(TOLERANCE) * deviations[0], noise)).sum())
    kept = available if rank is None else rank
    if kept > available:
        raise InputError(
            f"rank is {rank}; these {len(x)} embeddings of width {x.shape[1]} vary in {available} directions only"
        )
    return Transform("whiten", mean, directions[:, :kept] / deviations[:kept])


def with_fitted_transform(encoder, sentences, kind="whiten", rank=None):
    """A SentenceEncoder like `encoder`, with the Transform fitted to its embeddings of `sentences`.

    Fitted to the pooled rows as they are: an older transform of the encoder gives way to the new one, and scaling to
    length 1 comes after both. Raises InputError as `fit_transform` and `encode` do, and for one string in place of a
    list.
    """
    sentences, bare = listed(sentences), encoder.with_transform(None)
    require_fit(kind, rank, len(sentences), bare.dimension)  # before the work of encoding
    return bare.with_transform(fit_transform(bare.with_reading(normalize=False).encode(sentences), kind, rank))


def too_few(kind, rows, width):
    """A sentence of warning where a whitening is fitted to few rows for the width, else None."""
    if kind != "whiten" or rows >= ENOUGH * width:
        return None
    return (
        f"Whitening is fitted to {rows:,} sentences, fewer than {ENOUGH} for each of {width} coordinates: it equalises "
        "their noise too, and a larger text to fit to would tell more."
    )


def require_fit(kind, rank, rows, width):
    """Raise InputError where `fit_transform` would, as far as the size of the table (rows, width) tells."""
    if kind not in FITTED:
        raise InputError(f"kind {kind!r:.60} is not one of {', '.join(FITTED)}")
    if rows < 2:
        raise InputError(f"there are {rows} embeddings; a transform is fitted to at least 2")
    if rank is None:
        return
    if kind == "centre":
        raise InputError(f"rank is {rank!r:.60}; centring keeps every direction, so leave it out")
    require_whole("rank", rank)
    if not 1 <= rank <= min(rows - 1, width):
        most = min(rows - 1, width)
        raise InputError(f"rank is {rank}; expected 1 to {most} for {rows} embeddings of width {width}")


def _principal(x):
    """(standard deviations, falling; directions (D, r)) of centred rows x (n, D).

    By the singular values of the rows and not by the eigenvalues of their covariance, whose squares lose half the
    digits of the small ones; by those of the triangular factor, so that no second table of n rows is formed.
    """
    _, s, vt = np.linalg.svd(np.linalg.qr(x, mode="r"), full_matrices=False)
    largest = np.take_along_axis(vt, np.abs(vt).argmax(axis=1)[:, None], axis=1)
    return s / np.sqrt(len(x)), (vt * np.where(largest < 0, -1, 1)).T


def _frozen(name, values, dimensions):
    array = np.array(values, np.float64, order="C")
    if array.ndim != dimensions or not array.size:
        raise InputError(f"{name} has shape {array.shape}; expected {dimensions} dimension(s), none of them empty")
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds NaN or infinity; expected finite numbers")
    array.setflags(write=False)
    return array
