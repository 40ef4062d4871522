"""Days of many machines: the first 24 steps of a day are seen, the last 8 are to be forecast.

Every day is one of `types` day types (fixed shapes of 32 steps) at its own level and scale. Over it lies the texture of
the month: a wave whose frequency belongs to the month, at another phase every day. What comes next depends on the type;
the texture only tells the date. linear=True replaces the types by a linear process (AR(2), one long oscillation), where
the future is a weighted sum of the past.
"""

from dataclasses import dataclass, replace

import numpy as np
from plain_encoder import PlainEncoder, train

from nano_simcse.analogues import Windows, cut_windows, forecast_by_analogues, overlapping, standardise_windows
from nano_simcse.augmentations import augment
from nano_simcse.layers import normalize

DAY, SEEN, AHEAD = 32, 24, 8
DAYS_A_MONTH, MONTHS = 15, 6
FREQUENCIES = (0.08, 0.13, 0.19, 0.26, 0.34, 0.43)  # cycles a step, by month
POSITIVES = ("raw window", "next day", "jitter, scaling, masking", "and other textures")


class Panel:
    """machines (machines, time) of one seed. texture: amplitude of the month's wave; noise: standard deviation.

    families 2: even machines have the first half of the day types, odd ones the rest; 1: all have all.
    """

    def __init__(self, seed=0, machines=10, types=24, texture=1.0, noise=0.15, linear=False, families=1):
        rng = np.random.default_rng([seed, 80])
        days = DAYS_A_MONTH * MONTHS
        own = types // families
        self.family = np.arange(machines) % families
        self.type = rng.integers(own, size=(machines, days)) + own * self.family[:, None]
        shapes = np.array([_shape(rng) for _ in range(types)])
        time = np.arange(DAY * days)
        month = time // (DAY * DAYS_A_MONTH)
        phase = np.repeat(2 * np.pi * rng.random((machines, days)), DAY, axis=1)
        wave = np.sqrt(2) * np.sin(2 * np.pi * np.array(FREQUENCIES)[month] * time + phase)
        signal = shapes[self.type].reshape(machines, -1) if not linear else _oscillation(rng, machines, len(time))
        grow = np.repeat(np.exp(0.3 * rng.standard_normal((machines, days))), DAY, axis=1) if not linear else 1.0
        level = np.repeat(2 * rng.standard_normal((machines, days)), DAY, axis=1) if not linear else 0.0
        self.machines = level + grow * (signal + (0 if linear else texture) * wave
                                        + noise * rng.standard_normal(signal.shape))


def _shape(rng):
    knots = rng.standard_normal(9)
    smooth = np.interp(np.linspace(0, 8, DAY), np.arange(9), knots)
    return (smooth - smooth.mean()) / smooth.std()


def _oscillation(rng, machines, length):
    """x_t = 1.8 x_{t-1} - 0.97 x_{t-2} + noise: a swing of about 15 steps that slowly loses its phase."""
    x, shocks = np.zeros((machines, length)), 0.3 * rng.standard_normal((machines, length))
    for t in range(2, length):
        x[:, t] = 1.8 * x[:, t - 1] - 0.97 * x[:, t - 2] + shocks[:, t]
    return x


@dataclass
class Backtest:
    """Windows of a panel, cut every `step` steps, and the split: train before the first test origin, test after."""

    windows: Windows
    train: np.ndarray
    test: np.ndarray

    @classmethod
    def of(cls, panel, step=4, first_day=60):
        windows = cut_windows(panel.machines, SEEN, AHEAD, step)
        origin = first_day * DAY + SEEN
        whole_days = windows.start % DAY == 0
        later = whole_days & (windows.origin >= origin)
        return cls(windows, np.flatnonzero(windows.end <= origin), np.flatnonzero(later))


def other_texture(rng, x):
    """x plus a wave of random frequency, phase and strength: a view from another month."""
    n = len(x)
    turns = rng.uniform(0.06, 0.45, (n, 1)) * np.arange(x.shape[1]) + rng.random((n, 1))
    return x + rng.uniform(0.3, 1.0, (n, 1)) * np.sqrt(2) * np.sin(2 * np.pi * turns)


def fit(backtest, positives, steps=250, seed=0, batch=96, tau=0.1, exclude=True):
    """An encoder of windows trained on one of POSITIVES (None for the raw window); exclude: strike out overlaps."""
    if positives == "raw window":
        return lambda x: standardise_windows(x)[0]
    windows, rows = backtest.windows, backtest.train
    if positives == "next day":
        row_of = {(int(windows.series[r]), int(windows.start[r])): r for r in rows}
        after = [row_of.get((int(windows.series[r]), int(windows.start[r]) + DAY), -1) for r in rows]
        rows, following = rows[np.array(after) >= 0], np.array([r for r in after if r >= 0])
    encoder = PlainEncoder(SEEN, width=24, hidden=96, seed=seed)
    shape = standardise_windows(windows.past)[0]

    def view(rng, x):
        x = augment(rng, x, ["jitter", "scaling", "masking"])
        x = other_texture(rng, x) if positives == POSITIVES[3] else x
        return standardise_windows(x)[0]

    def draw(rng):
        chosen = rng.choice(len(rows), batch, replace=False)
        struck = overlapping(windows[rows[chosen]]) if exclude else None
        if positives == "next day":
            return shape[rows[chosen]], shape[following[chosen]], struck
        x = shape[rows[chosen]]
        return view(rng, x), view(rng, x), struck

    train(encoder, draw, steps, tau=tau, seed=seed)
    return lambda x: encoder.encode(standardise_windows(x)[0])


def analogue_forecast(backtest, encode, k=8, rows=None, library=None, temperature=0.05, allow_future=False):
    """AnalogueForecast of the test windows (or `rows`) from all windows (or those marked in `library`, bool) that were
    over at each origin; ids number the windows of the backtest."""
    w = backtest.windows
    rows = backtest.test if rows is None else rows
    kept = np.arange(len(w)) if library is None else np.flatnonzero(library)
    embedded = encode(w.past)
    found = forecast_by_analogues(w[rows], embedded[rows], w[kept], embedded[kept], k, temperature, allow_future)
    return replace(found, ids=kept[found.ids])


def direct_forecast(backtest, refit_every=5, ridge=1.0):
    """Ridge regression from the standardised window to the standardised continuation, refitted every few days on
    everything that was over by then: (tests, AHEAD)."""
    w, test = backtest.windows, backtest.test
    shape, level, scale = standardise_windows(w.past)
    target, out = (w.future - level) / scale, np.empty((len(test), AHEAD))
    block = w.origin[test] // (DAY * refit_every)
    for b in np.unique(block):
        asked = test[block == b]
        past = np.flatnonzero(w.end <= w.origin[asked].min())
        x, y = shape[past], target[past]
        beta = np.linalg.solve(x.T @ x + ridge * np.eye(SEEN), x.T @ y)
        out[block == b] = level[asked] + scale[asked] * (shape[asked] @ beta)
    return out


def error(backtest, forecast, rows=None):
    """Mean absolute error in units of each window's standard deviation."""
    w = backtest.windows[backtest.test if rows is None else rows]
    return float((np.abs(forecast - w.future) / standardise_windows(w.past)[2]).mean())


def neighbours_share(panel, backtest, found):
    """(share of neighbours from the query's month, share of those on whole days that have the query's day type)."""
    w, test = backtest.windows, backtest.test
    month = w.start // (DAY * DAYS_A_MONTH)
    same_month = month[found.ids] == month[test][:, None]
    day, whole = w.start // DAY, w.start % DAY == 0
    kind = np.where(whole, panel.type[w.series, np.minimum(day, panel.type.shape[1] - 1)], -1)
    same_type = kind[found.ids] == kind[test][:, None]
    return float(same_month.mean()), float(same_type.mean())


def pushes(panel, backtest, encode, taus, batches=8, n=96, seed=172):
    """Mean softmax weight of a negative over the average weight (1 = like any other), by temperature.

    Rows: windows that overlap the anchor; windows of the same day type at the same hour elsewhere, which is the same
    shape and nobody's known duplicate. Batches are drawn densely (a quarter of the training windows).
    """
    rng, sums, counts = np.random.default_rng(seed), np.zeros((2, len(taus))), np.zeros((2, 1))
    pool = backtest.train[: len(backtest.train) // 4]
    for _ in range(batches):
        w = backtest.windows[rng.choice(pool, n, replace=False)]
        near, kind, me = overlapping(w), panel.type[w.series, w.start // DAY], np.eye(n, dtype=bool)
        same_hour = (w.start[:, None] - w.start) % DAY == 0
        alike = (kind[:, None] == kind) & same_hour & ~near & ~me
        z = normalize(encode(w.past))[0]
        for t, tau in enumerate(taus):
            s = np.where(me, -np.inf, z @ z.T) / tau
            p = np.exp(s - s.max(axis=1, keepdims=True))
            p *= (n - 1) / p.sum(axis=1, keepdims=True)
            sums[:, t] += [p[near].sum(), p[alike].sum()]
        counts[:, 0] += [near.sum(), alike.sum()]
    return sums / counts


def purity(label, truth):
    """Share of rows that have the most common truth of their cluster."""
    return sum(np.bincount(truth[label == k]).max() for k in np.unique(label)) / len(truth)


def nearest_machine(backtest, encode):
    """The machine most like each one: largest cosine of the mean embeddings of their whole days, centred over machines
    (what all days share says nothing about a machine)."""
    w = backtest.windows
    days = w.start % DAY == 0
    z = normalize(encode(w.past[days]))[0]
    mean = np.array([z[w.series[days] == m].mean(axis=0) for m in range(w.series.max() + 1)])
    rows = normalize(mean - mean.mean(axis=0))[0]
    return (rows @ rows.T - 2 * np.eye(len(rows))).argmax(axis=1)
