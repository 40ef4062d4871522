"""CLIP loss at a learned scale: worked numbers, the textbook form, the ceiling, and every gradient by differences."""

import math

import numpy as np
import pytest
from cases import GRADIENT_LIMIT, difference_gradient
from scipy.special import logsumexp

from nano_simcse.errors import InputError
from nano_simcse.gradient_check import relative_error
from nano_simcse.losses import clip_loss, info_nce
from nano_simcse.parameters import Parameters

Q = np.array([[1.0, 0, 0], [0, 1, 0]])  # cosines [[.8, .2], [.4, .6]] with K
K = np.array([[0.8, 0.4, math.sqrt(0.2)], [0.2, 0.6, math.sqrt(0.6)]])


def draw(n=6, d=5, dtype=np.float64):
    generator = np.random.default_rng(0)
    return (2 * generator.standard_normal((n, d))).astype(dtype), generator.standard_normal((n, d)).astype(dtype)


def naive(queries, keys, log_scale, max_scale=math.inf):
    q, k = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, keys))
    z = min(math.exp(log_scale), max_scale) * q @ k.T
    return (logsumexp(z, axis=1) + logsumexp(z, axis=0) - 2 * np.diag(z)).mean() / 2


def test_two_pairs_by_hand():
    loss, backward = clip_loss(Q, K, math.log(2))
    assert float(loss) == pytest.approx(0.37962476290838476, abs=0, rel=1e-14)
    assert float(backward()[2]) == pytest.approx(-0.23358400648800443, abs=0, rel=1e-13)


@pytest.mark.parametrize("log_scale", [0.0, 1.0, 2.659, 4.0])
def test_equals_the_textbook_form_and_the_symmetric_info_nce(log_scale):
    q, k = draw()
    loss, backward = clip_loss(q, k, log_scale)
    assert float(loss) == pytest.approx(naive(q, k, log_scale), abs=0, rel=1e-12)
    other, other_back = info_nce(q, k, math.exp(-log_scale), symmetric=True)
    assert float(loss) == pytest.approx(float(other), abs=0, rel=1e-12)
    for mine, theirs in zip(backward(), other_back(), strict=False):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("log_scale", [0.0, 1.0, 2.659])
def test_gradients_equal_central_differences(log_scale):
    q, k = draw()
    a = np.array(log_scale)
    gradients = clip_loss(q, k, a)[1]()
    for x, gradient in zip((q, k, a), gradients, strict=True):
        numeric = difference_gradient(lambda: clip_loss(q, k, a)[0], x, h=1e-3 / math.exp(log_scale))
        assert gradient.shape == x.shape
        assert relative_error(gradient, numeric) <= 5 * GRADIENT_LIMIT


def test_above_the_ceiling_the_loss_is_that_of_the_ceiling_and_the_scale_gets_no_gradient():
    q, k = draw()
    at, above = clip_loss(q, k, math.log(3), max_scale=3.0), clip_loss(q, k, 1.7, max_scale=3.0)
    assert float(above[0]) == pytest.approx(float(at[0]), abs=0, rel=1e-14)
    for a, b in zip(at[1]()[:2], above[1]()[:2], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert above[1]()[2] == 0
    unclipped = clip_loss(q, k, 1.7, max_scale=math.inf)
    assert float(unclipped[0]) == pytest.approx(naive(q, k, 1.7), abs=0, rel=1e-12) != float(above[0])
    assert unclipped[1]()[2] != 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_parameter_clamped_to_the_ceiling_still_gets_a_gradient(dtype):
    q, k = draw(dtype=dtype)
    assert math.exp(math.log(100)) > 100  # why the comparison is one of logarithms
    p = Parameters({"log_scale": ()}, dtype=dtype)
    p["log_scale"][...] = 7
    assert clip_loss(q, k, p["log_scale"])[1]()[2] == 0
    np.minimum(p.flat, math.log(100), out=p.flat)
    gradient = clip_loss(q, k, p["log_scale"])[1]()[2]
    assert gradient > 0 and gradient.dtype == dtype  # random pairs: the positives lose, a lower scale is better


def test_the_scale_gradient_is_the_average_logit_minus_the_positive_one():
    q, k = draw()
    z = 3 * (q / np.linalg.norm(q, axis=1, keepdims=True)) @ (k / np.linalg.norm(k, axis=1, keepdims=True)).T
    rows, columns = np.exp(z - logsumexp(z, 1, keepdims=True)), np.exp(z - logsumexp(z, 0, keepdims=True))
    expected = (((rows + columns) * z).sum() - 2 * np.trace(z)) / (2 * len(z))
    assert float(clip_loss(q, k, math.log(3))[1]()[2]) == pytest.approx(expected, abs=0, rel=1e-12)


def test_a_batch_whose_positives_all_win_always_asks_for_a_larger_scale():
    q = draw()[0]
    for log_scale in (-3.0, 0.0, 2.0, 4.0):
        assert clip_loss(q, q, log_scale)[1]()[2] < 0


def test_float32_in_float32_out_and_close_to_float64():
    q, k = draw()
    loss, backward = clip_loss(q, k, 1.0)
    small, small_back = clip_loss(q.astype(np.float32), k.astype(np.float32), np.float64(1.0))
    assert small.dtype == np.float32 and small.ndim == 0
    assert float(small) == pytest.approx(float(loss), abs=0, rel=3e-6)
    for a, b in zip(small_back(), backward(), strict=True):
        assert a.dtype == np.float32
        np.testing.assert_allclose(a, b, atol=1e-5 * np.abs(b).max())


def test_backward_called_twice_gives_the_same_bits_and_arguments_stay_as_they_are():
    q, k = draw()
    before = q.copy(), k.copy()
    _, backward = clip_loss(q, k, 1.0)
    for a, b in zip(backward(), backward(), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal((q, k), before)


def test_one_point_costs_log_n_at_any_scale_and_one_pair_nothing():
    same = np.tile([[3.0, 4.0]], (7, 1))
    for log_scale in (0.0, 4.0):
        assert float(clip_loss(same, same, log_scale)[0]) == pytest.approx(math.log(7), abs=0, rel=1e-13)
    loss, backward = clip_loss(same[:1], same[:1], 1.0)
    assert float(loss) == 0 and not any(g.any() for g in backward())


def test_a_solved_batch_keeps_the_digits_of_its_loss():
    two = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert float(clip_loss(two, two, math.log(20))[0]) == pytest.approx(4.248354255291589e-18, abs=0, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((Q, K[:1], 0.0), {}, r"queries \(2, 3\) and keys \(1, 3\) must be two \(N, D\) arrays"),
        ((Q[:0], K[:0], 0.0), {}, r"queries \(0, 3\)"),
        ((Q, K, math.nan), {}, "log_scale is nan; expected a finite number"),
        ((Q, K, np.zeros(1)), {}, r"log_scale has shape \(1,\); expected one number"),
        ((Q, K, 0.0), {"max_scale": 0.0}, "max_scale is 0.0; expected a number above 0"),
        ((Q, K, 0.0), {"max_scale": math.nan}, "max_scale is nan"),
        ((Q, K, 800.0), {"max_scale": math.inf}, "log_scale is 800.0, so large that its exponential overflows float64"),
        ((np.zeros((2, 3)), K, 0.0), {}, "row 0 is the zero vector"),
    ],
)
def test_bad_arguments_are_named(arguments, options, message):
    with pytest.raises(InputError, match=message):
        clip_loss(*arguments, **options)
