"""The Gaussian error linear unit.

Forward      y = x Phi(x)                 Phi(x) = (1 + erf(x / sqrt 2)) / 2, the normal distribution function

Backward     dy/dx = Phi(x) + x phi(x)    phi(x) = exp(-x^2 / 2) / sqrt(2 pi)

Both need Phi and exp(-x^2 / 2), so the slope is made in the forward, while the numbers are in cache, and the
backward is one product.

float64 uses the library's erf. float32 uses Abramowitz and Stegun 7.1.26, which has the same exponential as its
last factor: with t = 1 / (1 + 0.3275911 |x| / sqrt 2),

             Phi(-|x|) = (a1 t + a2 t^2 + ... + a5 t^5) exp(-x^2 / 2) / 2,     error of Phi below 1.5e-7

             evaluated in u = c t with c^5 = a5 / 2, in which the leading coefficient is 1: one product less

The tanh form of the original paper, y = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, is offered for
checkpoints trained with it; it differs from the erf form by up to 4.8e-4.

Source: Hendrycks and Gimpel, arXiv 1606.08415.
"""

import math

import numpy as np

from ..backend import array_module, erf, row_blocks

FORMS = ("erf", "tanh")
SERIES = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)  # a5 ... a1, Abramowitz-Stegun 7.1.26
RECIPROCAL_SLOPE = 0.3275911 * math.sqrt(0.5)
STRETCH = (SERIES[0] / 2) ** 0.2
MONIC = tuple(a / 2 / STRETCH ** (4 - i) for i, a in enumerate(SERIES[1:]))  # coefficients of u^4 ... u
SIGN = np.int32(-(2**31))
CUBIC = 0.044715


def gelu(x, form="erf", grad=True, out=None):
    """y = x Phi(x), elementwise, or the tanh approximation with form="tanh".

    x: at least one axis; grad: whether a backward is wanted (False saves the slope); out: where to write y, which may
    be x. Returns (y, backward); backward(dy, out=None) -> dx, written to `out` where given, which may be dy; None
    without grad. Raises ValueError for another form.
    """
    if form not in FORMS:
        raise ValueError(f"gelu form {form!r} is not one of {', '.join(FORMS)}")
    xp = array_module(x)
    if form == "tanh":
        value_and_slope = _tanh_form
    else:
        value_and_slope = _erf_form if x.dtype == np.float64 else _series_form
    y, slope = xp.empty_like(x) if out is None else out, xp.empty_like(x) if grad else None
    for rows in row_blocks(x):
        value_and_slope(xp, x[rows], y[rows], slope[rows] if grad else None)

    def backward(dy, out=None):
        return xp.multiply(dy, slope, out=out)

    return y, backward if grad else None


# Each form fills y, which may be x, in its last operation, and slope, unless that is None, before.


def _erf_form(xp, x, y, slope):
    distribution = 0.5 * (1 + erf(x * math.sqrt(0.5)))
    if slope is not None:
        xp.add(distribution, x * xp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi), out=slope)
    xp.multiply(x, distribution, out=y)


def _series_form(xp, x, y, slope):
    """float32, in place; slope serves as scratch until it is filled."""
    number = x.dtype.type
    u = xp.abs(x)
    u += number(1 / RECIPROCAL_SLOPE)
    xp.divide(number(STRETCH / RECIPROCAL_SLOPE), u, out=u)
    phi = u + number(MONIC[0])
    for coefficient in MONIC[1:]:
        phi *= u
        phi += number(coefficient)
    phi *= u
    gauss = xp.multiply(x, x, out=u)
    gauss *= number(-0.5)
    xp.exp(gauss, out=gauss)
    phi *= gauss  # Phi(-|x|)
    xp.subtract(number(0.5), phi, out=phi)
    scratch = gauss if slope is None else slope
    sign = xp.bitwise_and(x.view(np.int32), SIGN, out=scratch.view(np.int32))
    xp.bitwise_or(phi.view(np.int32), sign, out=phi.view(np.int32))  # copysign, which is slow
    phi += number(0.5)  # Phi(x)
    if slope is not None:
        gauss *= number(1 / math.sqrt(2 * math.pi))
        gauss *= x
        xp.add(phi, gauss, out=slope)
    xp.multiply(x, phi, out=y)


def _tanh_form(xp, x, y, slope):
    number, root = x.dtype.type, math.sqrt(2 / math.pi)
    square = x * x
    inner = square * number(CUBIC)
    inner += number(1)
    inner *= x
    inner *= number(root)
    tanh = xp.tanh(inner, out=inner)
    half = (number(1) + tanh) * number(0.5)
    if slope is not None:
        inner_slope = square * number(3 * CUBIC * root)
        inner_slope += number(root)
        xp.subtract(number(1), tanh * tanh, out=slope)
        slope *= inner_slope
        slope *= x
        slope *= number(0.5)
        slope += half
    xp.multiply(x, half, out=y)
