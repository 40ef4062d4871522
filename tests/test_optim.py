"""Optimisers against hand numbers and textbook loops; clipping; schedules."""

import math
import re

import numpy as np
import pytest

from nano_simcse.backend import BLOCK_ELEMENTS
from nano_simcse.errors import InputError
from nano_simcse.optim import (
    SCHEDULES,
    SGD,
    Adam,
    AdamW,
    clip_factor,
    clip_global_norm,
    global_norm,
    learning_rate,
)
from nano_simcse.parallel import Workers
from nano_simcse.parameters import Parameters


def parameters(values, dtype=np.float64):
    values = np.asarray(values, dtype)
    return Parameters({"x": values.shape}, values.reshape(-1).copy())


def run(make, start, gradients, lr):
    theta = parameters(start)
    optimiser = make(theta)
    for g in gradients:
        optimiser.step(parameters(g), lr)
    return theta["x"]


def test_sgd_by_hand():
    np.testing.assert_allclose(run(SGD, [1.0, 2.0], [[10.0, -20.0]], 0.1), [0.0, 4.0], rtol=1e-15)


def test_momentum_by_hand():
    # u: 1, then .9 + 2 = 2.9; theta: -.1, then -.39
    got = run(lambda p: SGD(p, momentum=0.9), [0.0], [[1.0], [2.0]], 0.1)
    np.testing.assert_allclose(got, [-0.39], rtol=1e-14)


def test_first_adam_step_has_the_length_of_the_rate_whatever_the_gradient():
    got = run(Adam, [0.0, 0.0, 0.0], [[1e-3, -5.0, 1e6]], 0.01)
    np.testing.assert_allclose(got, [-0.01, 0.01, -0.01], rtol=2e-5)


def test_second_adam_step_by_hand():
    # g = 1, then 3: m = .39, v = .009999 (b1 .9, b2 .999); m^ = .39 / .19, v^ = .009999 / .001999
    got = run(lambda p: Adam(p, eps=0.0), [0.0], [[1.0], [3.0]], 0.1)
    second = 0.1 * (0.39 / 0.19) / math.sqrt(0.009999 / 0.001999)
    np.testing.assert_allclose(got, [-0.1 - second], rtol=1e-13)


def textbook_adamw(theta, gradients, lr, betas=(0.9, 0.999), eps=1e-8, decay=0.0):
    m = v = 0.0
    for t, g in enumerate(gradients, 1):
        theta = theta - lr * decay * theta
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        theta = theta - lr * (m / (1 - betas[0] ** t)) / (np.sqrt(v / (1 - betas[1] ** t)) + eps)
    return theta


@pytest.mark.parametrize("eps", [1e-8, 0.1])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.8)])
def test_adamw_equals_the_textbook_over_ten_steps(betas, decay, eps):
    generator = np.random.default_rng(0)
    start, gradients = generator.standard_normal(7), generator.standard_normal((10, 7))
    got = run(lambda p: AdamW(p, betas, eps, decay), start, gradients, 0.03)
    np.testing.assert_allclose(got, textbook_adamw(start, gradients, 0.03, betas, eps, decay), rtol=1e-12)


def test_decay_is_decoupled():
    np.testing.assert_allclose(run(lambda p: AdamW(p, weight_decay=0.1), [4.0], [[0.0]], 0.5), [3.8], rtol=1e-15)
    assert run(Adam, [4.0], [[0.0]], 0.5).item() == 4.0


def test_blocks_do_not_change_the_update():
    size = 2 * BLOCK_ELEMENTS + 17
    generator = np.random.default_rng(1)
    start, gradients = generator.standard_normal(size), generator.standard_normal((2, size))
    whole = run(AdamW, start, gradients, 0.01)
    for part in (slice(0, 5), slice(BLOCK_ELEMENTS - 3, BLOCK_ELEMENTS + 3), slice(size - 5, size)):
        np.testing.assert_array_equal(whole[part], run(AdamW, start[part], gradients[:, part], 0.01))


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (SGD, []),
        (lambda p: SGD(p, 0.9), ["velocity"]),
        (Adam, ["m", "v"]),
        (lambda p: AdamW(p, weight_decay=0.1), ["m", "v"]),
    ],
)
def test_an_optimiser_resumes_from_its_buffers(make, names):
    generator = np.random.default_rng(2)
    start, gradients = generator.standard_normal(5), generator.standard_normal((6, 5))
    theta = parameters(start)
    first = make(theta)
    for g in gradients[:3]:
        first.step(parameters(g), 0.1)
    assert list(first.buffers()) == names
    moved = theta.copy()
    second = make(moved)
    for name, buffer in first.buffers().items():
        second.buffers()[name].flat[...] = buffer.flat
    if hasattr(first, "steps"):
        assert first.steps == 3
        second.steps = first.steps
    for g in gradients[3:]:
        second.step(parameters(g), 0.1)
    np.testing.assert_array_equal(moved["x"], run(make, start, gradients, 0.1))


@pytest.mark.parametrize("make", [SGD, lambda p: SGD(p, 0.9), Adam, lambda p: AdamW(p, weight_decay=0.1)])
def test_updates_happen_in_place_in_float32_and_leave_the_gradient_alone(make):
    theta = parameters([1.0, -2.0, 3.0], np.float32)
    buffer, gradient = theta.flat, parameters([0.5, 0.25, -1.0], np.float32)
    optimiser = make(theta)
    for _ in range(2):
        optimiser.step(gradient, 0.1)
    assert theta.flat is buffer and buffer.dtype == np.float32
    np.testing.assert_array_equal(gradient.flat, np.array([0.5, 0.25, -1.0], np.float32))
    assert all(b.flat.dtype == np.float32 for b in optimiser.buffers().values())


# --- clipping ---------------------------------------------------------------------------------------------------


def test_norm_is_taken_over_all_tensors_together():
    gradients = Parameters({"a": (2,), "b": (1, 2)}, np.array([1.0, 2.0, 2.0, 4.0]))
    assert float(global_norm(gradients)) == 5.0


def test_the_norm_of_a_large_gradient_keeps_its_digits():
    flat = np.random.default_rng(0).standard_normal(2**22).astype(np.float32)
    with Workers(1):  # one sum by one thread loses most: 1e-5 here
        norm = global_norm(Parameters({"x": flat.shape}, flat))
    assert float(norm) == pytest.approx(np.sqrt((flat.astype(np.float64) ** 2).sum()), rel=1e-6)


def test_clipping_by_hand():
    gradients = Parameters({"a": (2,), "b": (1, 2)}, np.array([1.0, 2.0, 2.0, 4.0]))
    assert float(clip_global_norm(gradients, 1.0)) == 5.0
    np.testing.assert_allclose(gradients.flat, [0.2, 0.4, 0.4, 0.8], rtol=1e-15)
    before = gradients.flat.copy()
    assert float(clip_global_norm(gradients, 1.5)) == pytest.approx(1.0)
    np.testing.assert_array_equal(gradients.flat, before)  # short enough: not a bit changes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_adamw_with_the_factor_is_clipping_first(dtype, limit):
    flat = np.random.default_rng(1).standard_normal(50).astype(dtype)
    clipped, scaled = parameters(flat, dtype), parameters(flat, dtype)
    one, other = AdamW(clipped), AdamW(scaled)
    for t in range(3):
        gradients = parameters(np.random.default_rng(t).standard_normal(50), dtype)
        other.step(gradients, 0.1, factor=clip_factor(global_norm(gradients), limit))
        clip_global_norm(gradients, limit)
        one.step(gradients, 0.1)
    assert scaled.flat.tobytes() == clipped.flat.tobytes()
    assert other.v.flat.tobytes() == one.v.flat.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("limit", [1.0, 5.0, 1000.0])
def test_clipping_a_zero_gradient_leaves_zero(dtype, limit):
    gradients = parameters([0.0, 0.0], dtype)
    assert float(clip_global_norm(gradients, limit)) == 0.0
    assert not gradients.flat.any()


@pytest.mark.parametrize("clip", [clip_global_norm, lambda g, limit: clip_factor(global_norm(g), limit)])
@pytest.mark.parametrize("limit", [-1.0, 0.0, 0, math.nan, math.inf, 1e39, 1e-50])
def test_a_limit_that_would_turn_or_spoil_the_gradient_is_named(limit, clip):
    for values in ([3.0, 4.0], [0.0, 0.0]):
        gradients = parameters(values, np.float32)
        with pytest.raises(InputError, match=rf"limit is {re.escape(str(limit))}; expected a number above 0 that is"):
            clip(gradients, limit)
        np.testing.assert_array_equal(gradients.flat, values)


# --- schedules --------------------------------------------------------------------------------------------------


def rates(total, **options):
    return [learning_rate(2.0, step, total, **options) for step in range(total)]


def test_linear_schedule_by_hand():
    np.testing.assert_allclose(rates(6, warmup=2), [1.0, 2.0, 2.0, 1.5, 1.0, 0.5], rtol=1e-15)
    np.testing.assert_allclose(rates(4), [2.0, 1.5, 1.0, 0.5], rtol=1e-15)


def test_cosine_schedule_by_hand():
    root = math.sqrt(0.5)
    np.testing.assert_allclose(rates(4, schedule="cosine"), [2.0, 1 + root, 1.0, 1 - root], rtol=1e-14)
    np.testing.assert_allclose(rates(3, warmup=2, schedule="cosine"), [1.0, 2.0, 2.0], rtol=1e-15)


def test_constant_schedule_with_warm_up():
    np.testing.assert_allclose(rates(5, warmup=4, schedule="constant"), [0.5, 1.0, 1.5, 2.0, 2.0], rtol=1e-15)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("total", "warmup"), [(1, 0), (1, 1), (5, 5), (5, 50), (100, 10)])
def test_rates_lie_between_zero_and_the_peak(schedule, total, warmup):
    assert all(0 < rate <= 2.0 for rate in rates(total, warmup=warmup, schedule=schedule))


def test_an_unknown_schedule_is_named():
    with pytest.raises(InputError, match="schedule 'step' is not one of constant, linear, cosine"):
        learning_rate(1.0, 0, 10, schedule="step")
