"""InfoNCE with mined passages: duplicates are masked exactly, everything else is the plain loss."""

import re

import numpy as np
import pytest
from cases import GRADIENT_LIMIT, loss_errors
from scipy.special import logsumexp

from nano_simcse.errors import InputError
from nano_simcse.losses import duplicate_mask, hard_negative_loss, info_nce

B, D = 5, 4


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def batch(k):
    """Queries, passages, mined passages and their ids; passage 3 repeats 1, two mined ones repeat positives."""
    q, p, n = 2 * draw(B, D, seed=1), draw(B, D, seed=2), 0.5 * draw(B * k, D, seed=3)
    p[3], n[2], n[4] = p[1], p[0], p[4]
    pos_ids = np.array([10, 11, 12, 11, 14])
    neg_ids = 20 + np.arange(B * k)
    neg_ids[[2, 4]] = 10, 14
    return q, p, n, pos_ids, neg_ids


def row_by_row(q, p, n, tau, pos_ids, neg_ids):
    """The loss with explicit candidate lists: duplicates are never put on the list."""
    losses = []
    for i in range(len(q)):
        kept = [p[i]]
        kept += [p[j] for j in range(len(p)) if j != i and pos_ids[j] != pos_ids[i]]
        kept += [n[m] for m in range(len(n)) if neg_ids[m] != pos_ids[i]]
        z = unit(np.array(kept)) @ unit(q[i : i + 1])[0] / tau
        losses.append(logsumexp(z) - z[0])
    return np.mean(losses)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("tau", [0.05, 1.0])
def test_masked_candidates_equal_candidates_left_off_the_list(k, tau):
    q, p, n, pos_ids, neg_ids = batch(k)
    loss, _ = hard_negative_loss(q, p, n, tau, pos_ids, neg_ids)
    assert float(loss) == pytest.approx(row_by_row(q, p, n, tau, pos_ids, neg_ids), abs=0, rel=1e-12)
    assert float(loss) < float(info_nce(q, p, tau, hard_negatives=n)[0])


@pytest.mark.parametrize("k", [1, 2])
def test_gradients_equal_central_differences(k):
    q, p, n, pos_ids, neg_ids = batch(k)
    assert max(loss_errors(lambda *a: hard_negative_loss(*a, 0.3, pos_ids, neg_ids), q, p, n)) <= 5 * GRADIENT_LIMIT


@pytest.mark.parametrize("k", [1, 2])
def test_without_a_common_id_it_is_the_plain_loss(k):
    q, p, n, *_ = batch(k)
    loss, backward = hard_negative_loss(q, p, n, 0.1, np.arange(B), 100 + np.arange(B * k))
    plain, plain_backward = info_nce(q, p, 0.1, hard_negatives=n)
    assert loss == plain
    for a, b in zip(backward(), plain_backward(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_masked_column_gets_no_gradient_from_its_row():
    q, p, n, *_ = batch(1)
    ids = np.zeros(B, int)  # one answer for all queries: no in-batch negative is left
    loss, backward = hard_negative_loss(q, p, n, 0.1, ids, np.zeros(B, int))
    assert float(loss) == 0.0
    assert all(not g.any() for g in backward())


def test_mined_passages_may_come_as_a_block_per_query():
    q, p, n, pos_ids, neg_ids = batch(2)
    flat, flat_backward = hard_negative_loss(q, p, n, 0.1, pos_ids, neg_ids)
    loss, backward = hard_negative_loss(q, p, n.reshape(B, 2, D), 0.1, pos_ids, neg_ids.reshape(B, 2))
    assert loss == flat and backward()[2].shape == (B, 2, D)
    np.testing.assert_array_equal(backward()[2].reshape(-1, D), flat_backward()[2])


def test_ids_may_be_words_and_float32_stays():
    q, p, n, pos_ids, neg_ids = batch(1)
    words = hard_negative_loss(q, p, n, 0.1, [f"p{i}" for i in pos_ids], [f"p{i}" for i in neg_ids])
    assert words[0] == hard_negative_loss(q, p, n, 0.1, pos_ids, neg_ids)[0]
    loss, backward = hard_negative_loss(*(x.astype(np.float32) for x in (q, p, n)), 0.1, pos_ids, neg_ids)
    assert loss.dtype == np.float32 and all(g.dtype == np.float32 for g in backward())
    assert float(loss) == pytest.approx(float(words[0]), abs=0, rel=1e-5)


def test_mask_marks_repeats_of_the_own_positive_only():
    mask = duplicate_mask([7, 8, 7, 9], [8, 7, 5, 5])
    expected = np.zeros((4, 8), bool)
    expected[0, [2, 5]] = expected[2, [0, 5]] = expected[1, 4] = True
    np.testing.assert_array_equal(mask, expected)
    assert not duplicate_mask([3, 3, 3])[np.arange(3), np.arange(3)].any()


def test_tiny_temperature_masks_as_well():
    q, p, n, pos_ids, neg_ids = batch(1)
    loss, backward = hard_negative_loss(q, p, n, 1e-5, pos_ids, neg_ids)
    assert float(loss) == pytest.approx(row_by_row(q, p, n, 1e-5, pos_ids, neg_ids), abs=0, rel=1e-10)
    assert all(np.isfinite(g).all() for g in backward())


@pytest.mark.parametrize(
    ("pos_ids", "neg_ids", "message"),
    [
        (np.arange(4), np.arange(5), r"give 4 \+ 5 ids; expected one per row of P and Nh, 5 \+ 5"),
        (np.arange(5), np.arange(4), r"give 5 \+ 4 ids"),
        (np.arange(5)[:, None], np.arange(5), r"pos_ids must hold one id per query, got shape \(5, 1\)"),
    ],
)
def test_ids_that_do_not_fit_are_named(pos_ids, neg_ids, message):
    q, p, n, *_ = batch(1)
    with pytest.raises(InputError, match=message):
        hard_negative_loss(q, p, n, 0.1, pos_ids, neg_ids)


def test_a_number_of_mined_passages_that_is_no_multiple_is_refused():
    q, p, *_ = batch(1)
    with pytest.raises(InputError, match="must be"):
        hard_negative_loss(q, p, draw(7, D), 0.1, np.arange(5), np.arange(7))


@pytest.mark.parametrize(
    ("pos_ids", "neg_ids", "message"),
    [
        ([1, 2], ["1", "2"], "pos_ids are integers and neg_ids are strings; expected ids of one kind"),
        (["1", "2"], np.array([1, 2]), "pos_ids are strings and neg_ids are integers"),
        ([None, None], [1, 2], "pos_ids hold NoneType; expected all of them integers or all strings"),
        (["a", None], ["a", "b"], "pos_ids hold NoneType and str"),
        (["a", "b"], ["a", 7], "neg_ids hold int and str"),
        ([0, 1], [1.0, 2.0], "neg_ids hold float"),
    ],
)
def test_ids_that_cannot_be_compared_are_named(pos_ids, neg_ids, message):
    with pytest.raises(InputError, match=message):
        duplicate_mask(pos_ids, neg_ids)


@pytest.mark.parametrize("kind", [np.int32, np.uint64, str, object])
def test_ids_may_come_in_any_array_of_one_kind(kind):
    words = np.array(["p", "q"], object)
    pos_ids, neg_ids = (words, words[::-1]) if kind is object else (np.array([7, 8]).astype(kind), np.array([8, 7]))
    neg_ids = neg_ids.astype(str) if kind is str else neg_ids
    np.testing.assert_array_equal(duplicate_mask(pos_ids, neg_ids), [[0, 0, 0, 1], [0, 0, 1, 0]])


def test_large_ids_of_two_integer_types_are_compared_exactly():
    mask = duplicate_mask(np.array([2**62 + 1]), np.array([2**62, 2**62 + 1], np.uint64))  # one float64, all three
    np.testing.assert_array_equal(mask, [[False, False, True]])


@pytest.mark.parametrize("shape", [(4,), (1, 5, 1, 4), ()])
def test_mined_rows_of_another_number_of_axes_are_named(shape):
    q, p, *_ = batch(1)
    with pytest.raises(InputError, match=rf"Nh {re.escape(str(shape))} must be \(B \* k, D\) or \(B, k, D\)"):
        hard_negative_loss(q, p, np.ones(shape), 0.1, np.arange(5), np.arange(5))
