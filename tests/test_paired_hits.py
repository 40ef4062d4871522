"""Two systems on the same queries: counts, errors and the exact test, by hand and by resampling."""

import numpy as np
import pytest
from scipy.stats import binom

from nano_simcse.errors import InputError
from nano_simcse.paired_hits import paired_hits

EVERY = np.arange(66)


def test_hits_kept_and_hits_exchanged():
    kept, exchanged = paired_hits(EVERY < 10, EVERY < 14), paired_hits(EVERY < 10, EVERY >= 52)
    assert kept.difference == exchanged.difference == pytest.approx(100 * 4 / 66)
    assert (kept.only_first, kept.only_second) == (0, 4)
    assert (exchanged.only_first, exchanged.only_second) == (10, 14)
    mean = 4 / 66
    assert kept.paired_error == pytest.approx(100 * np.sqrt((4 / 66 - mean**2) / 66))
    assert exchanged.paired_error == pytest.approx(100 * np.sqrt((24 / 66 - mean**2) / 66))
    both = 10 * 56 + 14 * 52  # hits times misses of each system
    assert kept.unpaired_error == exchanged.unpaired_error == pytest.approx(100 * np.sqrt(both / 66**3))
    assert kept.p_value == 2 * 0.5**4
    assert exchanged.p_value == pytest.approx(2 * binom.cdf(10, 24, 0.5))


def test_paired_error_is_that_of_resampled_queries():
    draw = np.random.default_rng(0)
    first = draw.random(200) < 0.3
    second = np.where(draw.random(200) < 0.8, first, draw.random(200) < 0.5)
    again = draw.integers(200, size=(20000, 200))
    differences = 100 * (second[again].mean(axis=1) - first[again].mean(axis=1))
    result = paired_hits(first, second)
    assert result.paired_error == pytest.approx(differences.std(), rel=0.03)
    assert result.difference == pytest.approx(differences.mean(), abs=0.1)
    assert result.unpaired_error > 1.3 * result.paired_error


def test_swapping_the_systems_turns_the_sign_only():
    one, other = paired_hits(EVERY < 10, EVERY % 3 == 0), paired_hits(EVERY % 3 == 0, EVERY < 10)
    assert one.difference == -other.difference
    assert (one.paired_error, one.p_value, one.only_first) == (other.paired_error, other.p_value, other.only_second)


def test_equal_systems_differ_by_nothing():
    result = paired_hits(EVERY < 10, EVERY < 10)
    assert (result.difference, result.paired_error, result.p_value, result.queries) == (0, 0, 1, 66)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([1, 0], [1], "one query list, got 2 and 1"),
        ([], [], "at least one"),
        ([1, 2], [1, 0], "first must be a list of hits"),
        ([1, 0], [1, float("nan")], "second must be a list of hits"),
    ],
)
def test_bad_lists_are_refused(first, second, message):
    with pytest.raises(InputError, match=message):
        paired_hits(first, second)
