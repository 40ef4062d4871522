"""Sensor windows for anomaly detection: few things matter, and the loudest thing does not.

A normal window of 48 steps is one of 6 pulse patterns, each at its own level (+LEVEL or -LEVEL) and a gain of about 1,
plus vibration (a random mixture of 16 fixed waves, far louder than the pulses), plus small noise. Anomalies, five
kinds: a pattern never seen, a pattern cut in half, the level of the other patterns, a gain far off, a fast ripple.
"""

import numpy as np
from plain_encoder import PlainEncoder, train

from nano_simcse.augmentations import augment
from nano_simcse.neighbours import NormalReference, quantile_threshold

STEPS, PATTERNS, WAVES, LEVEL = 48, 6, 16, 1.0
KINDS = ("new pattern", "cut pattern", "level", "gain", "ripple")
_TIME = np.arange(STEPS)


class Sensor:
    """One machine. seed: its patterns and waves; vibration: loudness of the waves; noise: standard deviation."""

    def __init__(self, seed=0, vibration=1.5, noise=0.1):
        rng = np.random.default_rng([seed, 70])
        self.vibration, self.noise = vibration, noise
        self.patterns = np.array([self._pattern(rng) for _ in range(PATTERNS + 2)])  # the last two are not yet known
        waves = rng.standard_normal((STEPS, WAVES))
        self.waves = np.linalg.qr(waves - waves.mean(axis=0))[0].T * np.sqrt(STEPS / WAVES)  # mean 0, together size 1

    def _pattern(self, rng):
        places, signs = rng.choice(np.arange(4, 44), 3, replace=False), rng.choice([-1.0, 1.0], 3)
        pulse = sum(s * np.exp(-(((_TIME - p) / 2.5) ** 2)) for p, s in zip(places, signs, strict=True))
        return 1.6 * (pulse - pulse.mean())

    def shake(self, rng, x):
        """x with more vibration mixed in: the augmentation that only someone who knows the machine would write."""
        return x + self.vibration * rng.standard_normal((len(x), WAVES)) @ self.waves

    def dress(self, rng, signal, level, gain=None):
        """signal (n, STEPS) at level (n,), with gain, vibration and noise as a normal window has them."""
        n = len(signal)
        gain = np.exp(0.1 * rng.standard_normal((n, 1))) if gain is None else gain
        level = level[:, None] + 0.1 * rng.standard_normal((n, 1))
        return gain * self.shake(rng, signal + level) + self.noise * rng.standard_normal((n, STEPS))

    def normal(self, rng, n, patterns=PATTERNS, first=0):
        """(windows (n, STEPS), pattern numbers (n,))."""
        which = first + rng.integers(patterns, size=n)
        return self.dress(rng, self.patterns[which], level_of(which)), which

    def anomalies(self, rng, n, kind):
        """n windows of one of KINDS."""
        which = rng.integers(PATTERNS, size=n)
        signal, level = self.patterns[which], level_of(which)
        if kind == "new pattern":
            return self.dress(rng, np.array([self._pattern(rng) for _ in range(n)]), level)
        if kind == "cut pattern":
            return self.dress(rng, signal * (_TIME < STEPS // 2), level)
        if kind == "level":
            return self.dress(rng, signal, -level)
        if kind == "gain":
            return self.dress(rng, signal, level, gain=2.5)
        return self.dress(rng, signal + 1.2 * np.sin(0.9 * np.pi * _TIME + 2 * np.pi * rng.random((n, 1))), level)


def level_of(which):
    """The level a pattern belongs at."""
    return np.where(which % 2 == 0, LEVEL, -LEVEL)


def fit(windows, views, steps=250, seed=0, bias=True, batch=64):
    """An encoder trained on two views of normal windows; views(rng, x) -> x makes one."""
    encoder = PlainEncoder(STEPS, seed=seed, bias=bias)

    def draw(rng):
        x = windows[rng.choice(len(windows), batch, replace=False)]
        return views(rng, x), views(rng, x)

    train(encoder, draw, steps, seed=seed)
    return encoder


def auc(normal, odd):
    """Probability that an odd one scores above a normal one, ties half."""
    order = np.sort(normal)
    below, up_to = (np.searchsorted(order, odd, side) for side in ("left", "right"))
    return float((below + up_to).mean() / (2 * len(normal)))


def shaken(sensor, names):
    """A view: more of the machine's vibration and the named augmentations."""
    return lambda rng, x: augment(rng, sensor.shake(rng, x), names)


def brightness_by(sensor, size, shake=True):
    """A view: a level shift of this size, jitter, and vibration unless shake is False."""

    def view(rng, x):
        x = sensor.shake(rng, x) if shake else x
        return augment(rng, x, ["jitter"]) + size * rng.standard_normal((len(x), 1))

    return view


def contamination(sensor, ks=(1, 5, 60), share=0.04, seed=0):
    """Percent of a recurring fault (a seventh pattern) found at the 99 % threshold, and the false alarms in percent.

    (encoder clean / contaminated, reference clean / contaminated, ks, 2): `share` of the windows that were taken for
    normal are the fault; a contaminated reference comes with an equally contaminated held-out set, as it would.
    """
    rng = np.random.default_rng([seed, 71])
    clean, held, fresh = (sensor.normal(rng, n)[0] for n in (1000, 600, 1000))
    faults = [sensor.normal(rng, n, patterns=1, first=PATTERNS)[0] for n in (40, 24, 300)]
    dirty = np.concatenate([clean[: -len(faults[0])], faults[0]])
    dirty_held = np.concatenate([held[: -len(faults[1])], faults[1]])
    result = np.empty((2, 2, len(ks), 2))
    for e, seen in enumerate((clean, dirty)):
        encode = fit(seen, shaken(sensor, ["jitter"]), seed=seed).encode
        for r, (reference, hold) in enumerate(((clean, held), (dirty, dirty_held))):
            for j, k in enumerate(ks):
                index = NormalReference(encode(reference), k)
                limit = quantile_threshold(index.scores(encode(hold)), 0.99)
                result[e, r, j] = [100 * index.scores(encode(x)).above(limit).mean() for x in (faults[2], fresh)]
    return result


def new_mode(sensor, encode, reference, limit_quantile=0.99, added=150, seed=0):
    """Percent of false alarms on a new kind of normal (an eighth pattern): before and after `added` windows of it join
    the reference, and on the old kinds afterwards."""
    rng = np.random.default_rng([seed, 72])
    new, more = (sensor.normal(rng, n, patterns=1, first=PATTERNS + 1)[0] for n in (400, added))
    held, old = (sensor.normal(rng, n)[0] for n in (600, 1000))
    index = NormalReference(encode(reference))
    limit = quantile_threshold(index.scores(encode(held)), limit_quantile)
    before = index.scores(encode(new)).above(limit).mean()
    index.extend(encode(more))
    after = [index.scores(encode(x)).above(limit).mean() for x in (new, old)]
    return 100 * np.array([before, *after])
