"""The triplet margin loss: by hand, at the edge of its dead zone, and by differences."""

import math

import numpy as np
import pytest
from cases import GRADIENT_LIMIT, loss_errors

from nano_simcse.errors import InputError
from nano_simcse.losses import triplet


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def on_circle(*degrees):
    angle = np.deg2rad(degrees)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def test_by_hand_on_raw_rows():
    a, p, n = np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), np.array([[0.0, 5.5]])
    loss, backward = triplet(a, p, n, margin=1.0, unit_length=False)  # 5 - 5.5 + 1
    assert float(loss) == 0.5
    da, dp, dn = backward()
    np.testing.assert_allclose(dp, [[0.6, 0.8]], rtol=1e-15)
    np.testing.assert_allclose(dn, [[0.0, -1.0]], rtol=1e-15)
    np.testing.assert_allclose(da, [[-0.6, 0.2]], rtol=1e-14)


@pytest.mark.parametrize("unit_length", [True, False])
def test_gradients_equal_central_differences(unit_length):
    a, p, n = 2 * draw(7, 5, seed=1), draw(7, 5, seed=2), 0.5 * draw(7, 5, seed=3)
    loss = triplet(a, p, n, 1.0, unit_length=unit_length)[0]
    assert 0 < loss
    errors = loss_errors(lambda *x: triplet(*x, 1.0, unit_length=unit_length), a, p, n, h=1e-4)
    assert max(errors) <= 10 * GRADIENT_LIMIT


def test_met_margin_gives_exact_zeros_and_the_others_keep_their_share():
    # cosine 0.5 is distance 1 from a perfect positive: just beyond 60 degrees the margin 1 is met
    anchors, positives = on_circle(0, 0), on_circle(0, 0)
    loss, backward = triplet(anchors, positives, on_circle(61, 59))
    assert float(loss) == pytest.approx((1 - math.sqrt(2 - 2 * math.cos(math.radians(59)))) / 2, abs=0, rel=1e-12)
    for gradient in backward():
        assert not gradient[0].any()
    assert backward()[0][1].any() and backward()[2][1].any()
    assert float(triplet(anchors, positives, on_circle(61, 61))[0]) == 0.0


def test_a_batch_in_one_point_pays_the_margin_and_gets_no_gradient():
    x = np.tile([[3.0, 4.0]], (4, 1))
    loss, backward = triplet(x, 2 * x, x, margin=0.7)
    assert float(loss) == pytest.approx(0.7, abs=0, rel=1e-15)
    assert all(not g.any() for g in backward())


def test_raw_rows_meet_the_margin_by_growing_and_unit_rows_do_not():
    a, p, n = draw(6, 3, seed=1), draw(6, 3, seed=1) + 0.1, draw(6, 3, seed=2)
    raw = [float(triplet(c * a, c * p, c * n, unit_length=False)[0]) for c in (0.01, 100.0)]
    assert raw[0] == pytest.approx(1, abs=0.05) and raw[1] == 0.0
    kept = [float(triplet(c * a, c * p, c * n)[0]) for c in (0.01, 100.0)]
    assert kept[0] == pytest.approx(kept[1], abs=0, rel=1e-12)


def test_backward_twice_gives_the_same_bits_and_float32_stays():
    a, p, n = (draw(4, 3, seed=s).astype(np.float32) for s in range(3))
    loss, backward = triplet(a, p, n)
    assert loss.dtype == np.float32 and loss.ndim == 0
    for x, y in zip(backward(), backward(), strict=True):
        assert x.dtype == np.float32
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("place", range(3))
def test_a_nan_reaches_the_loss(place):
    rows = [draw(4, 3, seed=s) for s in range(3)]
    rows[place][2, 1] = math.nan
    assert math.isnan(triplet(*rows, unit_length=False)[0])


@pytest.mark.parametrize(
    ("shapes", "margin", "message"),
    [
        (((3, 2), (3, 2), (4, 2)), 1.0, r"negatives \(4, 2\) must be three \(B, D\) arrays"),
        (((0, 2),) * 3, 1.0, r"anchors \(0, 2\)"),
        (((3,),) * 3, 1.0, r"anchors \(3,\)"),
        (((3, 2),) * 3, -0.1, "margin is -0.1; expected a finite number of 0 or more"),
        (((3, 2),) * 3, math.nan, "margin is nan"),
    ],
)
def test_bad_arguments_are_named(shapes, margin, message):
    with pytest.raises(InputError, match=message):
        triplet(*(np.ones(shape) for shape in shapes), margin)


def test_a_zero_row_is_refused_only_where_it_must_be_normalised():
    x = np.array([[1.0, 0.0], [0.0, 0.0]])
    with pytest.raises(InputError, match="row 1 is the zero vector"):
        triplet(x, x, x)
    assert float(triplet(x, x, x, unit_length=False)[0]) == 1.0
