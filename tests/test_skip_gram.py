"""Skip-gram with negative sampling: worked numbers, the textbook form, limits, gradients."""

import math

import numpy as np
import pytest
from cases import GRADIENT_LIMIT, loss_errors

from nano_simcse.errors import InputError
from nano_simcse.losses import skip_gram


def case(batch=4, k=3, width=5, seed=0):
    draw = np.random.default_rng(seed)
    return [draw.standard_normal(shape) for shape in ((batch, width), (batch, width), (batch, k, width))]


def test_one_pair_by_hand():
    v, u, n = np.array([[1.0, -1.0]]), np.array([[2.0, 1.0]]), np.array([[[0.0, 1.0], [1.0, -1.0]]])
    loss, backward = skip_gram(v, u, n)
    assert float(loss) == pytest.approx(2.753451386, abs=1e-9)
    dv, du, dn = backward()
    np.testing.assert_allclose(dv, [[0.342914229, -0.880797078]], atol=1e-9)
    np.testing.assert_allclose(du, [[-0.268941421, 0.268941421]], atol=1e-9)
    np.testing.assert_allclose(dn, [[[0.268941421, -0.268941421], [0.880797078, -0.880797078]]], atol=1e-9)


def test_equals_the_textbook_form_with_loops():
    v, u, n = case()
    total = 0.0
    for b in range(len(v)):
        total -= math.log(1 / (1 + math.exp(-(v[b] @ u[b]))))
        total -= sum(math.log(1 / (1 + math.exp(v[b] @ n[b, j]))) for j in range(n.shape[1]))
    assert float(skip_gram(v, u, n)[0]) == pytest.approx(total / len(v), rel=1e-12)


@pytest.mark.parametrize("k", [1, 3, 7])
def test_gradients_equal_central_differences(k):
    assert max(loss_errors(skip_gram, *case(k=k))) <= GRADIENT_LIMIT


@pytest.mark.parametrize("k", [1, 5, 15])
def test_a_zero_context_table_costs_one_plus_k_log_2_and_the_best_constant_less(k):
    v, u, n = case(k=k)
    assert float(skip_gram(v, 0 * u, 0 * n)[0]) == pytest.approx((1 + k) * math.log(2), rel=1e-14)
    row = np.array([1.0, 0, 0, 0, 0])
    other = -math.log(k) * row
    best, _ = skip_gram(np.tile(row, (4, 1)), np.tile(other, (4, 1)), np.tile(other, (4, k, 1)))
    assert float(best) == pytest.approx((1 + k) * math.log(1 + k) - k * math.log(k), rel=1e-13)


def test_huge_scores_stay_finite_and_confident_right_answers_cost_nothing():
    v, u, n = np.array([[1e3, 0.0]]), np.array([[1e3, 0.0]]), np.array([[[-1e3, 0.0]]])
    loss, backward = skip_gram(v, u, n)
    assert float(loss) == 0
    assert all((g == 0).all() for g in backward())
    loss, backward = skip_gram(v, -u, -n)
    assert float(loss) == 2e6
    np.testing.assert_array_equal(backward()[1], -v)


def test_float32_stays_float32_and_agrees():
    arrays = case()
    narrow = [x.astype(np.float32) for x in arrays]
    loss, backward = skip_gram(*narrow)
    assert loss.dtype == np.float32
    for small, wide in zip(backward(), skip_gram(*arrays)[1](), strict=True):
        assert small.dtype == np.float32
        np.testing.assert_allclose(small, wide, atol=1e-6)


def test_arguments_are_left_alone():
    arrays = case()
    before = [x.copy() for x in arrays]
    skip_gram(*arrays)[1]()
    for x, kept in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(x, kept)


@pytest.mark.parametrize("wrong", ["contexts", "negatives", "batch"])
def test_shapes_that_do_not_fit_are_refused(wrong):
    v, u, n = case()
    arguments = {"contexts": (v, u[:3], n), "negatives": (v, u, n[:, :, :4]), "batch": (v[:0], u[:0], n[:0])}[wrong]
    with pytest.raises(InputError, match=r"\(4, 5\)|B >= 1"):
        skip_gram(*arguments)
