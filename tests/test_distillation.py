"""Teacher and student: a worked value, gradients by differences, and the price of collapse."""

import numpy as np
import pytest
from cases import GRADIENT_LIMIT, loss_errors

from nano_simcse.errors import InputError
from nano_simcse.losses import distillation


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def test_by_hand():
    teacher = np.array([[1.0, 0.0], [0.0, 2.0]])
    sources, translations = np.array([[1.0, 1.0], [0.0, 2.0]]), np.array([[3.0, 0.0], [0.0, 0.0]])
    loss, backward = distillation(sources, translations, teacher)
    assert float(loss) == (1 + 4 + 0 + 4) / 2
    ds, dt = backward()
    np.testing.assert_array_equal(ds, [[0, 1], [0, 0]])
    np.testing.assert_array_equal(dt, [[2, 0], [0, -2]])


def test_gradients_equal_central_differences():
    teacher = draw(5, 3)
    errors = loss_errors(lambda s, t: distillation(s, t, teacher), draw(5, 3, seed=1), draw(5, 3, seed=2))
    assert max(errors) <= GRADIENT_LIMIT


def test_one_point_for_everything_costs_twice_the_variance_of_the_teacher():
    teacher = draw(50, 4)
    point = np.tile(teacher.mean(axis=0), (50, 1))
    loss, backward = distillation(point, point, teacher)
    assert float(loss) == pytest.approx(2 * teacher.var(axis=0).sum(), abs=0, rel=1e-13)
    assert np.abs(backward()[0]).max() > 0.01  # and, unlike a loss that only pulls, it has a gradient there


def test_float32_stays_and_shapes_are_checked():
    x = draw(5, 3).astype(np.float32)
    loss, backward = distillation(x, 2 * x, 3 * x)
    assert loss.dtype == np.float32 and all(g.dtype == np.float32 for g in backward())
    with pytest.raises(InputError, match=r"translations \(4, 3\) and teacher \(5, 3\)"):
        distillation(x, x[:4], x)
    with pytest.raises(InputError, match=r"teacher \(0, 3\)"):
        distillation(x[:0], x[:0], x[:0])
