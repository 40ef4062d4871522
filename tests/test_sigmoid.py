"""Sigmoid loss: worked numbers, the textbook form, the best bias, blocks, and every gradient by differences."""

import math

import numpy as np
import pytest
from cases import GRADIENT_LIMIT, difference_gradient

from nano_simcse.errors import InputError
from nano_simcse.gradient_check import relative_error
from nano_simcse.losses import sigmoid_loss


def draw(n=6, d=5, dtype=np.float64):
    generator = np.random.default_rng(0)
    return (2 * generator.standard_normal((n, d))).astype(dtype), generator.standard_normal((n, d)).astype(dtype)


def naive(queries, keys, log_scale, bias):
    """One pair after the other."""
    total = 0.0
    for i, q in enumerate(queries):
        for j, k in enumerate(keys):
            z = math.exp(log_scale) * q @ k / np.linalg.norm(q) / np.linalg.norm(k) + bias
            total -= math.log(1 / (1 + math.exp(-z if i == j else z)))
    return total / len(queries)


@pytest.mark.parametrize(("log_scale", "bias"), [(0.0, 0.0), (math.log(10), -10.0), (1.0, -2.0), (1.0, 3.0)])
def test_equals_the_textbook_form(log_scale, bias):
    q, k = draw()
    loss, _ = sigmoid_loss(q, k, log_scale, bias)
    assert float(loss) == pytest.approx(naive(q, k, log_scale, bias), abs=0, rel=1e-11)


@pytest.mark.parametrize(("log_scale", "bias"), [(0.0, 0.0), (math.log(10), -10.0), (1.0, -2.0)])
def test_gradients_equal_central_differences(log_scale, bias):
    q, k = draw()
    a, b = np.array(log_scale), np.array(bias)
    gradients = sigmoid_loss(q, k, a, b)[1]()
    for x, gradient in zip((q, k, a, b), gradients, strict=True):
        numeric = difference_gradient(lambda: sigmoid_loss(q, k, a, b)[0], x, h=1e-3 / math.exp(log_scale))
        assert gradient.shape == x.shape
        assert relative_error(gradient, numeric) <= 5 * GRADIENT_LIMIT


@pytest.mark.parametrize("n", [2, 64, 1000])
def test_the_best_bias_of_equal_cosines_is_the_log_odds_of_a_match(n):
    q, k = np.tile([[1.0, 0.0]], (n, 1)), np.tile([[0.0, 1.0]], (n, 1))
    gradient = sigmoid_loss(q, k, 1.0, -math.log(n - 1))[1]()[3]
    assert abs(gradient) < 1e-12
    assert sigmoid_loss(q, k, 1.0, -math.log(n - 1) + 0.1)[1]()[3] > 1e-3
    assert sigmoid_loss(q, k, 1.0, -math.log(n - 1) - 0.1)[1]()[3] < -1e-3


def test_loss_at_the_published_start_with_cosines_of_zero():
    q = np.tile([[1.0, 0.0]], (64, 1))
    k = np.tile([[0.0, 1.0]], (64, 1))
    assert float(sigmoid_loss(q, k, math.log(10), -10.0)[0]) == pytest.approx(10.00290552954988, abs=0, rel=1e-13)


def test_the_loss_is_a_sum_over_pairs():
    """Swapping two keys changes exactly the four entries of their columns in the swapped rows."""
    q, k = draw()

    def entry(i, j):
        both = sigmoid_loss(q[[i]], k[[j]], 1.0, -2.0)[0]  # one pair, judged as a match
        z = math.e * q[i] @ k[j] / np.linalg.norm(q[i]) / np.linalg.norm(k[j]) - 2
        return float(both) if i == j else math.log1p(math.exp(z))

    total = sum(entry(i, j) for i in range(6) for j in range(6)) / 6
    assert float(sigmoid_loss(q, k, 1.0, -2.0)[0]) == pytest.approx(total, abs=0, rel=1e-13)


@pytest.mark.parametrize("bias", [-700.0, 700.0])
def test_extreme_logits_are_finite_and_exact(bias):
    q, k = draw()
    loss, backward = sigmoid_loss(q, k, 0.0, bias)
    cosines = (q / np.linalg.norm(q, axis=1, keepdims=True)) @ (k / np.linalg.norm(k, axis=1, keepdims=True)).T
    wrong = cosines.trace() if bias < 0 else cosines.sum() - cosines.trace()
    count = 6 if bias < 0 else 30
    assert float(loss) == pytest.approx((count * 700 + (-wrong if bias < 0 else wrong)) / 6, abs=0, rel=1e-13)
    assert all(np.isfinite(g).all() for g in backward())


def test_a_solved_batch_keeps_the_digits_of_its_loss():
    two = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert float(sigmoid_loss(two, two, math.log(40), 0.0)[0]) == pytest.approx(2 * math.exp(-40), abs=0, rel=1e-12)


def test_float32_in_float32_out_and_close_to_float64():
    q, k = draw()
    loss, backward = sigmoid_loss(q, k, 1.0, -2.0)
    small, small_back = sigmoid_loss(q.astype(np.float32), k.astype(np.float32), 1.0, np.float64(-2.0))
    assert small.dtype == np.float32 and small.ndim == 0
    assert float(small) == pytest.approx(float(loss), abs=0, rel=3e-6)
    for a, b in zip(small_back(), backward(), strict=True):
        assert a.dtype == np.float32
        np.testing.assert_allclose(a, b, atol=1e-5 * np.abs(b).max())


def test_backward_called_twice_gives_the_same_bits():
    _, backward = sigmoid_loss(*draw(), 1.0, -2.0)
    for a, b in zip(backward(), backward(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("log_scale", "bias", "message"),
    [
        (math.inf, 0.0, "log_scale is inf; expected a finite number"),
        (0.0, math.nan, "bias is nan; expected a finite number"),
        (0.0, np.zeros(2), r"bias has shape \(2,\); expected one number"),
        (1000.0, 0.0, "log_scale is 1000.0, so large"),
    ],
)
def test_bad_arguments_are_named(log_scale, bias, message):
    with pytest.raises(InputError, match=message):
        sigmoid_loss(*draw(), log_scale, bias)


def test_shapes_that_do_not_fit_are_named():
    q, k = draw()
    with pytest.raises(InputError, match=r"queries \(6, 5\) and keys \(5, 5\)"):
        sigmoid_loss(q, k[:5], 0.0, 0.0)
