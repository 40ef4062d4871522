"""Monitors: each reading by hand, quiet on health, loud on its planted fault."""

import numpy as np
import pytest

from nano_simcse.errors import InputError
from nano_simcse.monitors import coverage, nearest_distances, probe_cosine, probe_recall, shift, staleness


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def test_probe_cosine_fires_on_a_point_and_on_a_line():
    x = draw(60, 16)
    assert not probe_cosine(x).alert
    cone = probe_cosine(x + 50)
    assert cone.alert and cone.value > 0.9
    line = probe_cosine(np.sign(x[:, :1]) * np.ones((1, 16)) + 1e-3 * x)
    assert line.alert and abs(line.value) < 0.2 and "effective rank 1.0" in line.detail


def test_probe_recall_by_hand():
    reading = probe_recall([[3, 1], [0, 2], [2, 4], [5, 6]], [1, 1, 2, 6], least=0.7)
    assert (reading.value, reading.alert, reading.name) == (0.75, False, "probe recall at 2")
    assert probe_recall([[3, 1], [0, 2]], [1, 1], least=0.7).alert


def test_shift_is_the_kolmogorov_smirnov_distance_with_its_limit():
    from scipy.stats import ks_2samp

    x, y = draw(300), draw(200, seed=1)
    reading = shift("norms", x, y)
    assert reading.value == pytest.approx(ks_2samp(x, y).statistic, rel=1e-13)
    assert reading.limit == pytest.approx(np.sqrt(np.log(2000) / 2 * (1 / 300 + 1 / 200)), rel=1e-13)
    assert not reading.alert and shift("norms", x, y + 0.7).alert


def test_shift_rarely_fires_when_nothing_moved():
    alerts = [shift("x", draw(100, seed=2 * i), draw(80, seed=2 * i + 1), alpha=0.05).alert for i in range(400)]
    assert sum(alerts) < 0.07 * 400


def test_staleness_and_coverage_by_hand():
    assert not staleness(["b"] * 4, "b").alert
    stale = staleness(["a", "b", "b", "b"], "b")
    assert stale.alert and stale.value == 0.25 and stale.detail == "2 versions"
    assert coverage([[0, 1], [1, 2]], 10, least=0.3).value == 0.3
    assert not coverage([[0, 1], [1, 2]], 10, least=0.3).alert and coverage([[0, 1], [0, 1]], 10, least=0.3).alert


def test_nearest_distance_by_hand():
    np.testing.assert_allclose(nearest_distances([[0.2, 0.9], [0.5, -1.0]]), [0.1, 0.5], rtol=1e-12)


def test_a_reading_prints_as_one_line():
    assert str(staleness(["a", "b"], "b")) == "ALERT  staleness: 0.5 (limit 0)  2 versions"
    assert str(coverage([[0]], 2, least=0.5)) == "ok     coverage: 0.5 (limit 0.5)"


def test_a_version_is_not_read_letter_by_letter():
    with pytest.raises(InputError, match="versions is 'abc', a str; expected a list of versions"):
        staleness("abc", "abc")


@pytest.mark.parametrize("call", [
    lambda: probe_recall(np.zeros(3), np.zeros(3), 0.5), lambda: shift("x", [], [1.0]),
    lambda: shift("x", [np.nan], [1.0]), lambda: shift("x", [0.0], [1.0], alpha=0), lambda: staleness([], "v"),
    lambda: coverage([[5]], 5, 0.1), lambda: coverage(np.zeros((0, 2), int), 5, 0.1), lambda: nearest_distances([1.0]),
])  # fmt: skip
def test_unusable_input_is_refused(call):
    with pytest.raises(InputError):
        call()
