"""A printed number is a claim: its digits say how exactly it is meant.

"0.8854" claims the value to half a unit of the fourth decimal, "9.453e-8" to half a unit of 1e-11.
A plain integer such as "64" or "0" claims the exact value; "64." claims it to half a unit of one.
"37.5%" claims 0.375. Several numbers make a vector, rows separated by ";" or a line break a matrix.
"""

import re
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

_NUMBER = re.compile(r"[-+]?(\d{1,3}(,\d{3})+|\d+)?(\.\d*)?([eE][-+]?\d+)?%?")
_DIGIT = re.compile(r"\d")

#: A plain integer is claimed exactly, up to float64 rounding of the computation behind it.
EXACT = 1e-9


class ClaimError(ValueError):
    """The text of a claim is not a number, a vector or a matrix: a mistake of the chapter, not of a value."""


@dataclass(frozen=True)
class Claim:
    """The numbers of a claim, the half unit of each, both in the shape the text gives them."""

    text: str
    values: np.ndarray
    half_units: np.ndarray

    def deviation(self, got):
        """Largest |got - claimed| in half units; inf for nan or inf in got. ClaimError: shapes differ."""
        array = as_numbers(got)
        if array.shape != self.values.shape:
            raise ClaimError(f"shape {array.shape} was computed, {self.text!r} has shape {self.values.shape}")
        if not np.isfinite(array).all():
            return float("inf")
        return float(np.max(np.abs(array - self.values) / self.half_units))

    def agrees(self, got):
        """Whether every number of got rounds to the claimed digits."""
        return self.deviation(got) <= 1.0 + 1e-9


def as_numbers(value):
    """value as a float64 array; ClaimError for anything that is not real numbers (booleans included)."""
    if hasattr(value, "get") and hasattr(value, "device"):  # a device array: bring it to the host
        value = value.get()
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "iuf" or array.size == 0:
        raise ClaimError(f"expected real numbers, got {_short(value)}")
    return array.astype(np.float64)


def parse(text, *, integers_exact=True):
    """Read a claim. text is a string or a list of strings (one a row).

    integers_exact: a plain integer means exactly that; False gives it, unless it is 0, half a unit like any other.
    Raises ClaimError when a token is not a number or the rows differ in length.
    """
    if not isinstance(text, str):
        text = ";".join(text)
    text = text.replace("\u2212", "-")
    rows = [row.strip() for row in re.split(r"[;\n]", text) if row.strip()]
    parsed = [[_number(token, text, integers_exact) for token in _tokens(row)] for row in rows]
    if not parsed or not all(parsed):
        raise ClaimError(f"the claim {text!r} holds no number")
    if len({len(row) for row in parsed}) > 1:
        raise ClaimError(f"the rows of the claim {text!r} differ in length")
    numbers = np.array(parsed)  # (rows, columns, 2)
    if len(parsed) == 1:
        numbers = numbers[0] if len(parsed[0]) > 1 else numbers[0, 0]
    return Claim("; ".join(rows), numbers[..., 0], numbers[..., 1])


def _tokens(row):
    for token in row.split():
        token = token.strip("()[]").rstrip(",")
        if token:
            yield token


def _number(token, text, integers_exact):
    if not _NUMBER.fullmatch(token) or not _DIGIT.search(token):
        raise ClaimError(f"{token!r} in the claim {text!r} is not a number")
    percent = token.endswith("%")
    digits = token.rstrip("%").replace(",", "")
    exact = Decimal(digits)
    scale = Decimal(1).scaleb(exact.as_tuple().exponent)
    if percent:
        exact, scale = exact / 100, scale / 100
    half = float(scale) / 2
    if (integers_exact or not exact) and not percent and not set(digits) & set(".eE"):
        half = EXACT * max(1.0, abs(float(exact)))
    return float(exact), half


def _short(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def show_number(value):
    """One number or a short run of them, as a check line prints it."""
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        return _short(value)
    if array.ndim == 0:
        return f"{array.item():.10g}" if array.dtype.kind == "f" else str(array.item())
    flat = array.ravel()
    head = " ".join(f"{x:.6g}" for x in flat[:6].tolist())
    return head if flat.size <= 6 else f"{head} ... ({' x '.join(map(str, array.shape))})"
