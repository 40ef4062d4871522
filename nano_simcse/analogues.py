"""Forecasting by analogues: find past windows that look like the present one, and average what came after them.

    window       w = x[t : t + T], its level = mean w, its scale = std w, its shape = (w - level) / scale
    forecast     level + scale * sum_i weight_i c_i,  c_i the continuation of neighbour i on ITS level and scale
    weight_i     exp(cos_i / temperature) / sum_j exp(cos_j / temperature)

An analogue is legal at an origin only if its continuation was over by then; anything later is the future.

Letters: n windows, T window length, H horizon, k neighbours.
"""

from dataclasses import dataclass

import numpy as np

from .backend import array_module
from .errors import InputError
from .inputs import require_whole, require_width, unit_rows
from .losses.candidate_info_nce import check_temperature

ROUNDING = 8  # eps of the precision: how far the entries of a constant window may lie apart, relative to the largest
LEAST_SPREAD = 1e-12  # the same in float64, where what was computed may carry the rounding of many steps


@dataclass(frozen=True)
class Windows:
    """Windows cut from series: past (n, T), future (n, H), series (n,) and start (n,) say where each was cut."""

    past: np.ndarray
    future: np.ndarray
    series: np.ndarray
    start: np.ndarray

    def __len__(self):
        return len(self.past)

    def __getitem__(self, rows):
        return Windows(self.past[rows], self.future[rows], self.series[rows], self.start[rows])

    @property
    def origin(self):
        """(n,): the first time step that a window's forecaster has not seen."""
        return self.start + self.past.shape[1]

    @property
    def end(self):
        """(n,): the first time step after the continuation."""
        return self.origin + self.future.shape[1]


def cut_windows(panel, length, horizon, step=1):
    """All windows of `length` with a continuation of `horizon`, every `step` steps, from panel (series, time)."""
    if panel.ndim != 2 or min(length, horizon, step) < 1 or length + horizon > panel.shape[1]:
        raise InputError(f"a panel {panel.shape} holds no window of {length} + {horizon} steps (step {step})")
    xp = array_module(panel)
    starts = xp.arange(0, panel.shape[1] - length - horizon + 1, step)
    series, start = (a.ravel() for a in xp.meshgrid(xp.arange(len(panel)), starts, indexing="ij"))
    rows = panel[series[:, None], start[:, None] + xp.arange(length + horizon)]
    return Windows(rows[:, :length], rows[:, length:], series, start)


def standardise_windows(past):
    """(shape (n, T), level (n, 1), scale (n, 1)); a constant window has shape 0 and scale 1.

    Constant is a window whose entries lie no further apart than ROUNDING eps of their precision, or LEAST_SPREAD, times
    the largest in size: divided by its scale, rounding would look like a shape.
    """
    xp = array_module(past)
    level = past.mean(axis=1, keepdims=True)
    scale = past.std(axis=1, keepdims=True)
    bound = max(ROUNDING * float(np.finfo(level.dtype).eps), LEAST_SPREAD)
    spread = past.max(axis=1, keepdims=True) - past.min(axis=1, keepdims=True)
    constant = spread <= bound * xp.abs(past).max(axis=1, keepdims=True)
    scale = xp.where(constant, 1, scale)
    return xp.where(constant, 0, (past - level) / scale), level, scale


def overlapping(windows):
    """bool (n, n): another window of the same series that shares time steps with this one (past or continuation).

    Negatives of this kind show much of the anchor itself; pass the matrix to `info_nce` as exclude. The diagonal is
    False.
    """
    xp = array_module(windows.start)
    near = xp.abs(windows.start[:, None] - windows.start) < windows.past.shape[1] + windows.future.shape[1]
    same = windows.series[:, None] == windows.series
    return same & near & ~xp.eye(len(windows), dtype=bool)


@dataclass(frozen=True)
class AnalogueForecast:
    """forecast (m, H), and the past windows it was made from: ids, weights and cosines, each (m, k)."""

    forecast: np.ndarray
    ids: np.ndarray
    weights: np.ndarray
    cosines: np.ndarray


def forecast_by_analogues(queries, query_rows, library, library_rows, k=8, temperature=0.1, allow_future=False):
    """Forecasts of the windows `queries` from those of `library`.

    queries, library          Windows; the continuations of queries are never read
    query_rows, library_rows  (m, D) and (n, D): their embeddings
    k, temperature            neighbours averaged and how sharply they are weighted by cosine
    allow_future              leave out the rule that an analogue must be over at the query's origin (to show the leak)
    Raises InputError where a query has fewer than k legal analogues, sizes do not fit, the temperature is not a finite
    number above 0, and as `inputs.unit_rows` does.
    """
    if len(queries) != len(query_rows) or len(library) != len(library_rows):
        pairs = f"{len(query_rows)} for {len(queries)} queries, {len(library_rows)} for {len(library)} library windows"
        raise InputError(f"every window needs one embedding, got {pairs}")
    q, rows = unit_rows(query_rows, "query_rows"), unit_rows(library_rows, "library_rows")
    require_width("query_rows", q, "the library has", rows.shape[1])
    check_temperature(temperature, q.dtype)
    require_whole("k", k)
    xp = array_module(q)
    cosines = q @ rows.T
    if allow_future:
        legal = (queries.series[:, None] != library.series) | (queries.start[:, None] != library.start)
    else:
        legal = library.end <= queries.origin[:, None]
    fewest = int(legal.sum(axis=1).min())
    if not 1 <= k <= fewest:
        raise InputError(f"k is {k}, but a query has only {fewest} analogues that were over at its origin")
    cosines = xp.where(legal, cosines, -xp.inf)
    ids = xp.argsort(-cosines, axis=1, kind="stable")[:, :k]
    near = xp.take_along_axis(cosines, ids, axis=1)
    weights = xp.exp((near - near[:, :1]) / temperature)
    weights /= weights.sum(axis=1, keepdims=True)
    _, level, scale = standardise_windows(library.past)
    continuations = (library.future - level) / scale  # (n, H), each in units of its own window
    mean = (weights[:, :, None] * continuations[ids]).sum(axis=1)
    _, level, scale = standardise_windows(queries.past)
    return AnalogueForecast(level + scale * mean, ids, weights, near)
