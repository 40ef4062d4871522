"""The information bound: worked values, its link to the loss, and what it refuses to say."""

import math

import numpy as np
import pytest

from nano_simcse.errors import InputError
from nano_simcse.losses import info_nce
from nano_simcse.mutual_information import information_bound, nce_mi_estimate


def test_two_rows_by_hand():
    # rows lose log(1 + e^-1.2) and log(1 + e^-0.4)
    scores = np.array([[1.6, 0.4], [0.8, 1.2]])
    expected = math.log(2) - (math.log1p(math.exp(-1.2)) + math.log1p(math.exp(-0.4))) / 2
    assert nce_mi_estimate(scores) == pytest.approx(expected, abs=0, rel=1e-14)


def test_equals_log_n_minus_the_loss():
    generator = np.random.default_rng(0)
    q, k = generator.standard_normal((9, 4)), generator.standard_normal((9, 4))
    scores = (q / np.linalg.norm(q, axis=1, keepdims=True)) @ (k / np.linalg.norm(k, axis=1, keepdims=True)).T / 0.1
    assert nce_mi_estimate(scores) == pytest.approx(math.log(9) - float(info_nce(q, k, 0.1)[0]), abs=1e-13)


def test_rows_are_contexts_and_a_constant_per_context_is_free():
    scores = np.random.default_rng(0).standard_normal((5, 5))
    shifted = scores + np.arange(5.0)[:, None]
    assert nce_mi_estimate(shifted) == pytest.approx(nce_mi_estimate(scores), abs=1e-14)
    assert abs(nce_mi_estimate(shifted.T) - nce_mi_estimate(scores.T)) > 0.1


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e3, 1e300])
def test_never_above_log_n_and_finite(scale):
    scores = scale * np.random.default_rng(0).standard_normal((5, 5))
    assert nce_mi_estimate(scores) <= math.log(5)
    exact = math.log(5) - math.log1p(4 * math.exp(-scale))
    assert nce_mi_estimate(scale * np.eye(5)) == pytest.approx(exact, abs=1e-14)


def test_exact_critic_of_correlated_gaussians_stays_below_the_truth():
    generator, rho = np.random.default_rng(0), 0.9
    truth = -0.5 * math.log(1 - rho**2)
    values = []
    for _ in range(200):
        x = generator.standard_normal(64)
        y = rho * x + math.sqrt(1 - rho**2) * generator.standard_normal(64)
        values.append(nce_mi_estimate(-((x - rho * y[:, None]) ** 2) / (2 * (1 - rho**2)) + x**2 / 2))
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    assert abs(np.mean(values) - 0.8086) < 4 * error  # the value of 3,125 batches
    assert np.mean(values) < truth


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.ones((2, 3)), r"scores of shape \(2, 3\) are not a square table"),
        (np.ones((0, 0)), r"scores of shape \(0, 0\)"),
        (np.array([[0.0, 1.0], [np.nan, 0.0]]), "row 1 of the scores holds NaN or infinity"),
    ],
)
def test_bad_scores_are_named(scores, message):
    with pytest.raises(InputError, match=message):
        nce_mi_estimate(scores)


def test_a_loss_below_chance_certifies_the_difference():
    bound = information_bound(1.0, 64)
    assert bound.nats == pytest.approx(math.log(64) - 1, rel=1e-15) and bound.ceiling == math.log(64)
    assert bound.informative and bound.reason == ""


@pytest.mark.parametrize("loss", [math.log(4), 1.5])
def test_a_loss_at_or_above_chance_says_nothing(loss):
    bound = information_bound(loss, 4)
    assert not bound.informative and bound.nats <= 0
    assert "is not below log 4 = 1.386" in bound.reason


def test_mined_negatives_bound_nothing():
    bound = information_bound(0.1, 64, independent=False)
    assert not bound.informative and "chosen for their queries" in bound.reason


@pytest.mark.parametrize(("loss", "candidates", "message"), [
    (math.nan, 4, "the loss is nan"), (-0.1, 4, "the loss is -0.1"), (1.0, 1, "a game of 1 candidates"),
])  # fmt: skip
def test_bad_bounds_are_named(loss, candidates, message):
    with pytest.raises(InputError, match=message):
        information_bound(loss, candidates)
