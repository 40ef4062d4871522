"""The (u, v, |u - v|) head: features by hand, gradients by differences, and what it cannot say without its bars."""

import math

import numpy as np
import pytest
from cases import GRADIENT_LIMIT, backward_errors, loss_errors

from nano_simcse.errors import InputError
from nano_simcse.losses import pair_classifier, pair_features


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


LABELS = np.array([0, 2, 1, 1, 0, 2])


def test_features_by_hand():
    u, v = np.array([[1.0, -2.0]]), np.array([[3.0, -5.0]])
    features, backward = pair_features(u, v)
    np.testing.assert_array_equal(features, [[1, -2, 3, -5, 2, 3]])
    du, dv = backward(np.array([[1.0, 2, 3, 4, 5, 6]]))
    np.testing.assert_array_equal(du, [[1 - 5, 2 + 6]])  # signs of u - v: -, +
    np.testing.assert_array_equal(dv, [[3 + 5, 4 - 6]])


def test_where_the_two_agree_the_bars_have_no_slope():
    u = draw(3, 4)
    _, backward = pair_features(u, u.copy(), parts=("|u-v|",))
    assert all(not g.any() for g in backward(np.ones((3, 4))))


@pytest.mark.parametrize("parts", [("u", "v", "|u-v|"), ("u", "v"), ("|u-v|",), ("|u-v|", "v")])
def test_feature_gradients_equal_central_differences(parts):
    errors = backward_errors(lambda u, v: pair_features(u, v, parts), draw(4, 3, seed=1), draw(4, 3, seed=2))
    assert max(errors) <= GRADIENT_LIMIT


def test_loss_gradients_equal_central_differences():
    arrays = draw(6, 4, seed=1), draw(6, 4, seed=2), 0.5 * draw(12, 3, seed=3), draw(3, seed=4)
    assert max(loss_errors(lambda *a: pair_classifier(*a, LABELS), *arrays)) <= GRADIENT_LIMIT


def test_chance_level_and_a_worked_pair():
    zero = pair_classifier(draw(6, 4), draw(6, 4, seed=1), np.zeros((12, 3)), np.zeros(3), LABELS)[0]
    assert float(zero) == pytest.approx(math.log(3), abs=0, rel=1e-14)
    # u = 1, v = 3, |u - v| = 2; logits 1 and 2 * 2 = 4
    weight = np.array([[1.0, 0], [0, 0], [0, 2.0]])
    loss, backward = pair_classifier(np.array([[1.0]]), np.array([[3.0]]), weight, np.zeros(2), np.array([0]))
    assert float(loss) == pytest.approx(math.log1p(math.exp(3)), abs=0, rel=1e-14)
    p = 1 / (1 + math.exp(-3))
    du, dv, dweight, dbias = backward()
    np.testing.assert_allclose(dbias, [-p, p], rtol=1e-13)
    np.testing.assert_allclose(du, [[-p - 2 * p]], rtol=1e-13)  # through u, and against the sign of u - v
    np.testing.assert_allclose(dv, [[2 * p]], rtol=1e-13)
    np.testing.assert_allclose(dweight, np.outer([1, 3, 2], [-p, p]), rtol=1e-13)


def test_without_the_bars_agreement_cannot_be_told():
    a, b = draw(1, 4, seed=1), draw(1, 4, seed=2)

    def logits(u, v, parts, weight):
        return pair_features(u, v, parts)[0] @ weight

    for parts, vanishes in ((("u", "v"), True), (("u", "v", "|u-v|"), False)):
        weight = draw(4 * len(parts), 3, seed=3)
        same = logits(a, a, parts, weight) + logits(b, b, parts, weight)
        crossed = logits(a, b, parts, weight) + logits(b, a, parts, weight)
        assert np.allclose(same, crossed, rtol=1e-12, atol=1e-12) == vanishes


def test_float32_stays():
    arrays = [x.astype(np.float32) for x in (draw(6, 4), draw(6, 4, seed=1), draw(12, 3, seed=2), draw(3))]
    loss, backward = pair_classifier(*arrays, LABELS)
    assert loss.dtype == np.float32 and all(g.dtype == np.float32 for g in backward())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((6, 4), (6, 3), (12, 3), (3,)), r"u \(6, 4\) and v \(6, 3\)"),
        (((6, 4), (6, 4), (8, 3), (3,)), r"weight \(8, 3\) and bias \(3,\) must be \(12, C\)"),
        (((6, 4), (6, 4), (12, 3), (2,)), r"bias \(2,\)"),
    ],
)
def test_shapes_that_do_not_fit_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        pair_classifier(*(np.ones(shape) for shape in arguments), LABELS)


def test_an_unknown_part_is_named():
    with pytest.raises(InputError, match=r"parts are \('u', 'u\*v'\); expected one or more of u, v, \|u-v\|"):
        pair_features(np.ones((2, 2)), np.ones((2, 2)), ("u", "u*v"))


@pytest.mark.parametrize("wrong", [-1, 3])
def test_a_label_that_is_no_relation_is_named(wrong):
    labels = np.array([0, 2, wrong, 1, 0, 2])
    with pytest.raises(InputError, match=f"labels hold {wrong}; expected integers from 0 to 2"):
        pair_classifier(draw(6, 4), draw(6, 4, seed=1), draw(12, 3), draw(3), labels)


def test_labels_that_are_no_integers_are_named():
    with pytest.raises(InputError, match="labels is an array of float64; expected one of integers"):
        pair_classifier(draw(6, 4), draw(6, 4, seed=1), draw(12, 3), draw(3), LABELS.astype(float))
