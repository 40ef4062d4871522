"""Central differences, to hold every derived gradient against."""

import numpy as np


def numeric_gradient(f, x, eps=1e-6):
    """d f / d x by central differences: (f(x + eps e_k) - f(x - eps e_k)) / (2 eps) for every entry k.

    f: array -> number. x: float64 array of any shape, left unchanged. The truncation error is of order
    eps^2 times the third derivative and rounding adds about 1e-16 |f| / eps, so eps = 1e-6 leaves roughly
    ten digits for values of order one. Returns an array like x. Raises TypeError for other dtypes.
    """
    x = np.asarray(x)
    if x.dtype != np.float64:
        raise TypeError(f"central differences need float64, got {x.dtype}")
    point = x.copy()
    gradient = np.empty_like(point)
    for k in np.ndindex(point.shape):
        point[k] = x[k] + eps
        above = float(f(point))
        point[k] = x[k] - eps
        below = float(f(point))
        point[k] = x[k]
        gradient[k] = (above - below) / (2 * eps)
    return gradient
