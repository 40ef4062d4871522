"""Losses: worked numbers, an independent implementation, limits, and every gradient by central differences."""

import math
import re

import numpy as np
import pytest
from cases import GRADIENT_LIMIT, loss_errors
from scipy.special import logsumexp

from nano_simcse.errors import InputError
from nano_simcse.losses import (
    FusedInfoNCE,
    candidate_info_nce,
    clip_loss,
    distillation,
    hard_negative_loss,
    info_nce,
    masked_lm,
    pair_classifier,
    pair_features,
    sharded_clip_loss,
    sigmoid_loss,
    skip_gram,
    triplet,
)
from nano_simcse.losses.info_nce_rows import info_nce_rows

DTYPES = [np.float64, np.float32]


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def keys_with_cosines(cosines):
    """One query along the first axis, its key and k hard negatives at the given cosines to it."""
    cosines = np.asarray(cosines)
    rows = np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1)
    return np.array([[3.0, 0.0]]), 7 * rows[:1], 0.2 * rows[1:]


def row_loss(cosines, temperature):
    query, key, others = keys_with_cosines(cosines)
    return float(info_nce(query, key, temperature, hard_negatives=others)[0])


def naive(queries, keys, temperature, hard_negatives=None, log_weight=0.0, exclude=None, symmetric=False):
    """Textbook form, with loops and scipy's logsumexp; candidates that are excluded are left out of the list."""

    def unit(x):
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    q, c = unit(queries), unit(keys)
    n, k = len(q), 0
    if hard_negatives is not None:
        k = len(hard_negatives) // n
        c = np.concatenate([c, unit(hard_negatives)])
    rows = []
    for i in range(n):
        logits, positive = [], None
        for j in range(len(c)):
            if exclude is not None and exclude[i, j]:
                continue
            own = n + i * k <= j < n + (i + 1) * k
            logits.append(q[i] @ c[j] / temperature + (log_weight if own else 0.0))
            positive = len(logits) - 1 if j == i else positive
        rows.append(logsumexp(logits) - logits[positive])
    loss = np.mean(rows)
    if symmetric:
        flipped = None if exclude is None else exclude[:, :n].T
        loss = (loss + naive(keys, queries, temperature, exclude=flipped)) / 2
    return loss


def random_exclude(n, candidates, seed=3):
    exclude = np.random.default_rng(seed).random((n, candidates)) < 0.3
    exclude[np.arange(n), np.arange(n)] = False
    return exclude


VARIANTS = {
    "plain": (0, {}),
    "symmetric": (0, {"symmetric": True}),
    "exclude": (0, {"exclude": random_exclude(6, 6)}),
    "exclude symmetric": (0, {"exclude": random_exclude(6, 6), "symmetric": True}),
    "hard": (1, {}),
    "hard weighted": (1, {"log_weight": math.log(2)}),
    "hard weighted down": (1, {"log_weight": -1.5}),
    "two hard each": (2, {"log_weight": 0.7}),
    "everything": (2, {"log_weight": 0.7, "exclude": random_exclude(6, 18), "symmetric": True}),
    "one hard, own removed": (1, {"log_weight": -math.inf}),
}


def case(name):
    k, options = VARIANTS[name]
    arrays = [2 * draw(6, 5, seed=1), draw(6, 5, seed=2)]
    if k:
        arrays.append(0.5 * draw(6 * k, 5, seed=4))
    return arrays, options


def evaluate(arrays, temperature, options):
    hard = arrays[2] if len(arrays) > 2 else None
    return info_nce(arrays[0], arrays[1], temperature, hard_negatives=hard, **options)


@pytest.mark.parametrize("temperature", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("name", VARIANTS)
def test_info_nce_equals_the_textbook_form(name, temperature):
    arrays, options = case(name)
    hard = arrays[2] if len(arrays) > 2 else None
    expected = naive(arrays[0], arrays[1], temperature, hard, **options)
    assert float(evaluate(arrays, temperature, options)[0]) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("temperature", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("name", VARIANTS)
def test_info_nce_gradients_equal_central_differences(name, temperature):
    arrays, options = case(name)
    h = 1e-3 * min(1.0, temperature)
    assert max(loss_errors(lambda *a: evaluate(a, temperature, options), *arrays, h=h)) <= 5 * GRADIENT_LIMIT


@pytest.mark.parametrize("name", VARIANTS)
def test_backward_called_twice_gives_the_same_bits(name):
    arrays, options = case(name)
    _, backward = evaluate(arrays, 0.1, options)
    for a, b in zip(backward(), backward(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", VARIANTS)
def test_float32_in_float32_out_and_close_to_float64(name):
    arrays, options = case(name)
    loss, backward = evaluate(arrays, 0.1, options)
    small, small_backward = evaluate([a.astype(np.float32) for a in arrays], 0.1, options)
    assert small.dtype == np.float32 and small.ndim == 0
    assert float(small) == pytest.approx(float(loss), abs=0, rel=3e-6)
    for a, b in zip(small_backward(), backward(), strict=True):
        assert a.dtype == np.float32
        np.testing.assert_allclose(a, b, atol=1e-5 * np.abs(b).max())


# --- worked rows ------------------------------------------------------------------------------------------------

ROW = [0.72, 0.54, 0.19]


@pytest.mark.parametrize(
    ("temperature", "expected"),
    [(1.0, 0.8853675739314368), (0.2, 0.3901625338727701), (0.05, 0.026981346032881603)],
)
def test_one_query_and_three_candidates(temperature, expected):
    assert row_loss(ROW, temperature) == pytest.approx(expected, abs=0, rel=1e-13)


def test_the_same_row_at_temperature_one_hundredth_keeps_its_digits():
    # log(1 + e^-18 + e^-53); logsumexp(z) - z_positive has only eight correct digits here
    exact = math.log1p(math.exp(-18) + math.exp(-53))
    assert exact == pytest.approx(1.5229979628736e-8, abs=0, rel=1e-13)
    assert row_loss(ROW, 0.01) == pytest.approx(exact, abs=0, rel=1e-12)


def test_pull_on_the_positive_is_the_sum_of_the_other_probabilities():
    # the derivative of the loss along the positive's cosine is -(1 - p) / tau
    for temperature, miss in ((1.0, 0.5874375018145692), (0.05, 0.02662060125771791), (0.01, 1.522997951276026e-8)):
        query, key, others = keys_with_cosines(ROW)
        _, dkey, _ = info_nce(query, key, temperature, hard_negatives=others)[1]()
        # turning the key by dt changes the cosine by -sin dt, and moves its tip by 7 dt
        tangent = np.array([-key[0, 1], key[0, 0]]) / 7
        turned = 7 * (dkey[0] @ tangent)
        assert turned == pytest.approx(miss / temperature * math.sqrt(1 - 0.72**2), abs=0, rel=1e-12)


def hard_negative_row(log_weight=0.0, contradictions=True):
    """Two queries; the second one sees only its positive. Cosines of the first: .75, .30, own .62, other .25."""
    cosines = np.array([0.75, 0.30, 0.62, 0.25])
    rows = np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1)
    queries = np.array([[1.0, 0.0], [0.0, 2.0]])
    exclude = np.zeros((2, 4 if contradictions else 2), bool)
    exclude[1] = [True, False, True, True][: exclude.shape[1]]
    hard = rows[2:] if contradictions else None
    options = {"hard_negatives": hard, "log_weight": log_weight, "exclude": exclude}
    return 2 * float(info_nce(queries, rows[:2], 0.05, **options)[0])


def test_hard_negatives_by_hand():
    assert hard_negative_row() == pytest.approx(0.07180181811822095, abs=0, rel=1e-13)
    alone = math.log1p(math.exp(-9))  # 1.2340218972e-4
    assert hard_negative_row(contradictions=False) == pytest.approx(alone, abs=0, rel=1e-13)


@pytest.mark.parametrize(
    ("alpha", "expected"), [(0.5, 0.03662658095483203), (1.0, 0.0718018181182219), (2.0, 0.13864476740449488)]
)
def test_weight_multiplies_the_exponential_of_the_own_hard_negative_only(alpha, expected):
    assert hard_negative_row(math.log(alpha)) == pytest.approx(expected, abs=0, rel=1e-12)


def test_weight_zero_means_the_own_hard_negative_is_not_there_and_the_others_stay():
    q, k, h = draw(3, 4, seed=1), draw(3, 4, seed=2), draw(3, 4, seed=3)
    own = np.concatenate([np.zeros((3, 3), bool), np.eye(3, dtype=bool)], axis=1)
    removed = info_nce(q, k, 0.2, hard_negatives=h, log_weight=-math.inf)
    excluded = info_nce(q, k, 0.2, hard_negatives=h, exclude=own)
    assert removed[0] == excluded[0] > info_nce(q, k, 0.2)[0]
    for a, b in zip(removed[1](), excluded[1](), strict=True):
        np.testing.assert_array_equal(a, b)


U = np.array([[4.0, 3, 2, 1], [3, 4, 1, 2], [1, -1, 4, -3]])
KEEP_A = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]])
KEEP_B = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])


def toy(keep_a, keep_b, temperature, **options):
    """Three sentences of four units under two masks of rate one half: loss and gradient of the units."""
    loss, backward = info_nce(2 * U * keep_a, 2 * U * keep_b, temperature, **options)
    da, db = backward()
    return float(loss), 2 * (da * keep_a + db * keep_b)


def test_three_sentences_by_hand_with_independent_masks():
    s = [[0.7155417527999327, 0.5366563145999494, 0.19402850002906638],
         [0.5366563145999494, 0.7155417527999327, 0.14552137502179976],
         [0.35777087639996635, -0.2683281572999747, 0.7761140001162655]]  # fmt: skip
    a, b = 2 * U * KEEP_A, 2 * U * KEEP_B
    np.testing.assert_allclose(a @ b.T / np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1)), s, rtol=1e-14)
    assert toy(KEEP_A, KEEP_B, 0.05)[0] == pytest.approx(0.0184616425912143, abs=0, rel=1e-13)
    assert toy(KEEP_A, KEEP_B, 1.0)[0] == pytest.approx(0.8207162385817041, abs=0, rel=1e-13)
    assert toy(KEEP_B, KEEP_A, 0.05)[0] == pytest.approx(0.01862804854837859, abs=0, rel=1e-13)
    assert toy(KEEP_A, KEEP_B, 0.05, symmetric=True)[0] == pytest.approx(0.018544845569796443, abs=0, rel=1e-13)


def test_gradient_of_the_three_sentences_with_independent_masks():
    expected = [
        [-0.028974525484316546, 0.036314980968793556, 0.003476579515442776, 0.0],
        [0.036312130385374855, -0.02885747927132727, 0.0, 0.003246762964592264],
        [0.00011563735979116663, 0.0, -8.724066958823958e-05, -7.77751061872639e-05],
    ]
    gradient = toy(KEEP_A, KEEP_B, 0.05)[1]
    np.testing.assert_allclose(gradient, expected, rtol=1e-11, atol=1e-16)
    assert np.linalg.norm(gradient) == pytest.approx(0.06582006532662127, abs=0, rel=1e-12)


def test_one_shared_mask_leaves_only_repulsion():
    loss, gradient = toy(KEEP_A, KEEP_A, 0.05)
    assert loss == pytest.approx(0.24740044628738317, abs=0, rel=1e-13)
    expected = np.zeros((3, 4))
    expected[:2, :2] = [[-0.1388914322573062, 0.18518857634307495], [0.18518857634307495, -0.1388914322573062]]
    np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-15)
    # without negatives nothing is left: the positive's own gradient vanishes for equal views
    alone = ~np.eye(3, dtype=bool)
    assert np.abs(toy(KEEP_A, KEEP_A, 0.05, exclude=alone)[1]).max() == 0


# --- anchors and limits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 3, 64, 512])
@pytest.mark.parametrize("temperature", [1.0, 0.05, 1e-6])
def test_chance_level_is_log_n_where_all_rows_coincide(n, temperature, dtype):
    x = np.tile(np.array([[3.0, 4.0, 12.0]], dtype), (n, 1))
    loss, backward = info_nce(x, 2 * x, temperature)
    assert float(loss) == pytest.approx(math.log(n), abs=0, rel=4 * float(np.finfo(dtype).eps))
    assert all(np.isfinite(g).all() for g in backward())


@pytest.mark.parametrize(
    ("k", "options", "candidates"),
    [(0, {}, 5), (1, {}, 10), (3, {}, 20), (1, {"exclude": random_exclude(5, 10)}, None), (0, {"symmetric": True}, 5)],
)
def test_denominator_counts_its_candidates(k, options, candidates):
    x = np.ones((5, 3))
    loss = info_nce(x, x, 0.05, hard_negatives=np.ones((5 * k, 3)) if k else None, **options)[0]
    counts = np.full(5, candidates) if candidates else (~options["exclude"]).sum(axis=1)
    assert float(loss) == pytest.approx(np.log(counts).mean(), abs=0, rel=1e-14)


def test_excluding_duplicates_equals_a_batch_without_them():
    q, k = draw(5, 4, seed=1), draw(5, 4, seed=2)
    k[3] = k[1]  # sentence 3 repeats sentence 1
    exclude = np.zeros((5, 5), bool)
    exclude[1, 3] = exclude[3, 1] = True
    rows = []
    for i in range(5):
        others = [j for j in range(5) if j != i and not exclude[i, j]]
        rows.append(float(info_nce(q[[i]], k[[i]], 0.1, hard_negatives=k[others])[0]))
    loss, backward = info_nce(q, k, 0.1, exclude=exclude)
    assert float(loss) == pytest.approx(np.mean(rows), abs=0, rel=1e-14)
    assert float(loss) < float(info_nce(q, k, 0.1)[0])
    dq = np.zeros_like(q)
    for i in range(5):
        others = [j for j in range(5) if j != i and not exclude[i, j]]
        dq[i] = info_nce(q[[i]], k[[i]], 0.1, hard_negatives=k[others])[1]()[0] / 5
    np.testing.assert_allclose(backward()[0], dq, rtol=1e-11, atol=1e-15)


def test_symmetric_is_the_mean_of_both_directions():
    q, k = draw(6, 5, seed=1), draw(6, 5, seed=2)
    loss, backward = info_nce(q, k, 0.1, symmetric=True)
    forth, forth_back = info_nce(q, k, 0.1)
    back, back_back = info_nce(k, q, 0.1)
    assert float(loss) == pytest.approx((float(forth) + float(back)) / 2, abs=0, rel=1e-15)
    np.testing.assert_allclose(backward()[0], (forth_back()[0] + back_back()[1]) / 2, rtol=1e-12, atol=1e-16)
    np.testing.assert_allclose(backward()[1], (forth_back()[1] + back_back()[0]) / 2, rtol=1e-12, atol=1e-16)


def test_symmetric_keeps_hard_negatives_with_the_queries():
    q, k, h = draw(4, 5, seed=1), draw(4, 5, seed=2), draw(4, 5, seed=3)
    loss = info_nce(q, k, 0.1, hard_negatives=h, log_weight=0.4, symmetric=True)[0]
    forth = info_nce(q, k, 0.1, hard_negatives=h, log_weight=0.4)[0]
    assert float(loss) == pytest.approx((float(forth) + float(info_nce(k, q, 0.1)[0])) / 2, abs=0, rel=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
def test_losses_near_1e_16_keep_their_digits(dtype):
    # one positive at cosine 1, 63 antipodal negatives, tau = .05: log(1 + 63 e^-40)
    query, key = np.array([[2.0, 0.0]], dtype), np.array([[5.0, 0.0]], dtype)
    loss, backward = info_nce(query, key, 0.05, hard_negatives=np.tile(-key, (63, 1)))
    assert float(loss) == pytest.approx(2.6764631808337003e-16, abs=0, rel=4e-6 if dtype == np.float32 else 1e-13)
    assert all(np.isfinite(g).all() for g in backward())
    two = np.array([[1.0, 0.0], [-1.0, 0.0]], dtype)
    assert float(info_nce(two, two, 0.05)[0]) == pytest.approx(
        4.248354255291589e-18, abs=0, rel=4e-6 if dtype == np.float32 else 1e-13
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", [{}, {"symmetric": True}, {"exclude": random_exclude(6, 6)}])
def test_stable_at_temperature_one_millionth(dtype, options):
    q, k = draw(6, 5, seed=1).astype(dtype), draw(6, 5, seed=2).astype(dtype)
    loss, backward = info_nce(q, k, 1e-6, **options)
    exact = naive(q.astype(np.float64), k.astype(np.float64), 1e-6, **options)
    assert exact > 1e5  # differences of cosines times a million
    assert float(loss) == pytest.approx(exact, abs=0, rel=1e-5 if dtype == np.float32 else 1e-12)
    assert all(np.isfinite(g).all() and np.abs(g).max() > 1e3 for g in backward())


@pytest.mark.parametrize(("dtype", "temperature"), [(np.float32, 1e-38), (np.float64, 1e-300)])
def test_the_smallest_temperatures_a_precision_holds_are_finite(dtype, temperature):
    q, k = draw(6, 5, seed=1).astype(dtype), draw(6, 5, seed=2).astype(dtype)
    loss, backward = info_nce(q, k, temperature)
    assert np.isfinite(loss) and all(np.isfinite(g).all() for g in backward())


@pytest.mark.parametrize("dtype", DTYPES)
def test_solved_rows_at_temperature_one_millionth_cost_nothing(dtype):
    q = draw(6, 5, seed=1).astype(dtype)
    loss, backward = info_nce(q, q, 1e-6)
    assert float(loss) == 0.0
    assert all(not g.any() for g in backward())


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_whose_negatives_are_all_excluded_adds_nothing(dtype):
    q, k = draw(4, 5, seed=1).astype(dtype), draw(4, 5, seed=2).astype(dtype)
    exclude = np.zeros((4, 4), bool)
    exclude[2] = [True, True, False, True]
    loss, backward = info_nce(q, k, 0.05, exclude=exclude)
    assert float(loss) == pytest.approx(naive(q, k, 0.05, exclude=exclude), abs=0, rel=1e-5)
    assert not backward()[0][2].any()
    everything = ~np.eye(4, dtype=bool)
    loss, backward = info_nce(q, k, 0.05, exclude=everything, symmetric=True)
    assert float(loss) == 0.0
    assert all(not g.any() for g in backward())


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_single_query_without_negatives_has_loss_and_gradient_zero(dtype):
    q = draw(1, 5).astype(dtype)
    for options in ({}, {"symmetric": True}):
        loss, backward = info_nce(q, draw(1, 5, seed=1).astype(dtype), 0.05, **options)
        assert float(loss) == 0.0 and loss.dtype == dtype
        assert all(not g.any() for g in backward())


def test_loss_does_not_see_the_lengths_of_rows_and_gradients_are_perpendicular_to_them():
    arrays, options = case("everything")
    loss, backward = evaluate(arrays, 0.1, options)
    scaled, scaled_backward = evaluate([3 * a for a in arrays], 0.1, options)
    assert float(scaled) == pytest.approx(float(loss), abs=0, rel=1e-13)
    for x, g, small in zip(arrays, backward(), scaled_backward(), strict=True):
        np.testing.assert_allclose(small, g / 3, rtol=1e-10, atol=1e-15)
        np.testing.assert_allclose((x * g).sum(axis=1), 0, atol=1e-14)


def test_every_query_sees_every_hard_negative():
    q, k, h = draw(3, 4, seed=1), draw(3, 4, seed=2), draw(6, 4, seed=3)
    base = float(info_nce(q, k, 1.0, hard_negatives=h)[0])
    for j in range(6):
        moved = h.copy()
        moved[j] = -moved[j]
        own = j // 2
        others = [i for i in range(3) if i != own]
        exclude = np.zeros((3, 9), bool)
        exclude[others, 3 + j] = True  # the same change, hidden from everyone but its owner
        assert float(info_nce(q, k, 1.0, hard_negatives=moved)[0]) != base
        hidden = info_nce(q, k, 1.0, hard_negatives=moved, exclude=exclude)[0]
        assert float(hidden) < float(info_nce(q, k, 1.0, hard_negatives=moved)[0])


# --- bad input --------------------------------------------------------------------------------------------------

GOOD = (np.ones((3, 2)), np.ones((3, 2)))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.ones((3, 2)), np.ones((2, 2)), 1.0), {}, r"queries \(3, 2\) and keys \(2, 2\)"),
        ((np.ones((0, 2)), np.ones((0, 2)), 1.0), {}, r"queries \(0, 2\)"),
        ((np.ones(3), np.ones(3), 1.0), {}, r"queries \(3,\)"),
        ((*GOOD, 0.0), {}, "temperature is 0.0; expected a finite number above 0"),
        ((*GOOD, -1.0), {}, "temperature is -1.0"),
        ((*GOOD, math.nan), {}, "temperature is nan"),
        ((*GOOD, math.inf), {}, "temperature is inf"),
        ((*GOOD, 1e-310), {}, "temperature is 1e-310, so small that a logit overflows float64"),
        (
            (*(x.astype(np.float32) for x in GOOD), 1e-39),
            {},
            "temperature is 1e-39, so small that a logit overflows float32",
        ),
        (
            (*GOOD, 1.0),
            {"hard_negatives": np.ones((3, 2)), "log_weight": math.nan},
            "log_weight is nan; expected a number",
        ),
        (
            (*GOOD, 1.0),
            {"hard_negatives": np.ones((3, 2)), "log_weight": math.inf},
            "log_weight is inf; expected a number",
        ),
        ((*GOOD, 1.0), {"log_weight": 0.5}, "log_weight is 0.5; expected a number below infinity, and hard negatives"),
        (
            (*GOOD, 1.0),
            {"hard_negatives": np.ones((4, 2))},
            r"hard negatives \(4, 2\) must be \(N \* k, D\) with N = 3",
        ),
        ((*GOOD, 1.0), {"hard_negatives": np.ones((3, 3))}, r"hard negatives \(3, 3\)"),
        ((*GOOD, 1.0), {"hard_negatives": np.ones((0, 2))}, r"hard negatives \(0, 2\)"),
        (
            (*GOOD, 1.0),
            {"exclude": np.zeros((3, 4), bool)},
            r"exclude \(3, 4\) must have one entry per candidate, \(3, 3\)",
        ),
        ((*GOOD, 1.0), {"exclude": np.eye(3, dtype=bool)}, "exclude removes the positive of row 0"),
        ((np.array([[1.0, 0], [0, 0]]), np.ones((2, 2)), 1.0), {}, "row 1 is the zero vector"),
    ],
)
def test_bad_arguments_are_named(arguments, options, message):
    with pytest.raises(InputError, match=message):
        info_nce(*arguments, **options)


@pytest.mark.parametrize("blocks", [0, 2])
def test_blocks_may_be_an_integer_of_numpy(blocks):
    q, k = draw(5, 3, seed=1), draw(5, 3, seed=2)
    assert info_nce(q, k, 0.1, blocks=np.int64(blocks))[0] == info_nce(q, k, 0.1, blocks=blocks)[0]


@pytest.mark.parametrize("blocks", [-1, np.int64(-1), True, np.True_, 2.0])
def test_blocks_that_are_no_number_of_rows_are_named(blocks):
    with pytest.raises(InputError, match=rf"blocks is {re.escape(repr(blocks))}; expected None, 0 for the whole"):
        info_nce(*GOOD, 1.0, blocks=blocks)


@pytest.mark.parametrize(
    ("exclude", "found"), [(np.zeros((3, 3), int), "an array of int64"), ([[False] * 3] * 3, "a list")]
)
def test_exclude_that_is_not_of_bool_is_named(exclude, found):
    with pytest.raises(InputError, match=f"exclude is {found}; expected"):
        info_nce(*GOOD, 1.0, exclude=exclude)


# --- arrays of another type: integers gave wrong losses, zero gradients or an error of NumPy ---------------------

X = np.array([[3.0, 1.0], [1.0, 2.0], [0.0, 4.0]])
NAMED = {  # loss -> (the loss as a function of its arrays, the arrays by the names under which they are refused)
    "info_nce": (
        lambda q, k, h, old: info_nce(q, k, 1.0, hard_negatives=h, queue=old),
        {"queries": X, "keys": X, "hard_negatives": X, "queue": X},
    ),
    "info_nce_rows": (lambda q, k: info_nce_rows(q, k, 1.0, slice(0, 2)), {"queries": X, "keys": X}),
    "candidate_info_nce": (
        lambda a, p, old, w: candidate_info_nce(a, p, 1.0, queue=old, log_weights=w),
        {"anchors": X, "positives": X, "queue": X, "log_weights": np.zeros((3, 9))},
    ),
    "FusedInfoNCE": (lambda a, p: (FusedInfoNCE()(a, p, 1.0).loss, None), {"anchors": X, "positives": X}),
    "hard_negative_loss": (
        lambda q, p, n: hard_negative_loss(q, p, n, 1.0, [1, 2, 3], [4, 5, 6]), {"Q": X, "P": X, "Nh": X}
    ),
    "clip_loss": (lambda q, k: clip_loss(q, k, 0.0), {"queries": X, "keys": X}),
    "sharded_clip_loss": (lambda q, k: sharded_clip_loss([X, q], [X, k], 0.0), {"queries": X, "keys": X}),
    "sigmoid_loss": (lambda q, k: sigmoid_loss(q, k, 0.0, 0.0), {"queries": X, "keys": X}),
    "triplet": (triplet, {"anchors": X, "positives": X, "negatives": X}),
    "distillation": (distillation, {"sources": X, "translations": X, "teacher": X}),
    "skip_gram": (skip_gram, {"centres": X, "contexts": X, "negatives": X[:, None]}),
    "masked_lm": (lambda z: masked_lm(z, np.array([0, 1, 1])), {"logits": X}),
    "pair_features": (pair_features, {"u": X, "v": X}),
    "pair_classifier": (
        lambda *a: pair_classifier(*a, np.array([0, 1, 1])),
        {"u": X, "v": X, "weight": np.ones((6, 2)), "bias": np.ones(2)},
    ),
}


@pytest.mark.parametrize(("loss", "name"), [(loss, name) for loss, (_, arrays) in NAMED.items() for name in arrays])
def test_only_arrays_of_floats_are_taken(loss, name):
    f, arrays = NAMED[loss]
    for dtype in DTYPES:
        assert np.isfinite(f(*(x.astype(dtype) for x in arrays.values()))[0]).all()
    for wrong, found in [
        (arrays[name].astype(int), "an array of int64"),
        (arrays[name].astype(np.float16), "an array of float16"),
        (arrays[name].tolist(), "a list"),
        (None, "a NoneType"),
    ]:
        if wrong is None and name in ("hard_negatives", "queue", "log_weights"):
            continue  # None is their default
        with pytest.raises(InputError, match=f"^{name} is {found}; expected .* float32 or float64$"):
            f(*(arrays | {name: wrong}).values())


# --- masked language modelling ----------------------------------------------------------------------------------


def test_masked_lm_by_hand():
    logits = np.log(np.array([[1.0, 2.0, 5.0], [4.0, 2.0, 2.0]]))
    loss, backward = masked_lm(logits, np.array([2, 1]))
    assert float(loss) == pytest.approx((math.log(8 / 5) + math.log(4)) / 2, abs=0, rel=1e-15)
    np.testing.assert_allclose(backward(), np.array([[0.125, 0.25, -0.375], [0.5, -0.75, 0.25]]) / 2, rtol=1e-14)


def test_masked_lm_gradient_equals_central_differences():
    targets = np.array([0, 6, 3, 3])
    assert max(loss_errors(lambda z: masked_lm(z, targets), 3 * draw(4, 7))) <= GRADIENT_LIMIT


def test_masked_lm_equals_the_textbook_form_and_is_stable():
    logits, targets = 5 * draw(4, 7), np.array([0, 6, 3, 3])
    expected = (logsumexp(logits, axis=1) - logits[np.arange(4), targets]).mean()
    assert float(masked_lm(logits, targets)[0]) == pytest.approx(expected, abs=0, rel=1e-14)
    assert float(masked_lm(np.array([[1e4, -1e4]]), np.array([1]))[0]) == 2e4
    assert float(masked_lm(np.zeros((3, 50)), np.array([1, 2, 3]))[0]) == pytest.approx(math.log(50), abs=0, rel=1e-15)


def test_masked_lm_backward_twice_gives_the_same_bits():
    _, backward = masked_lm(draw(4, 7), np.array([0, 6, 3, 3]))
    np.testing.assert_array_equal(backward(), backward())


def test_masked_lm_stays_in_float32():
    loss, backward = masked_lm(draw(4, 7).astype(np.float32), np.array([0, 6, 3, 3]))
    assert loss.dtype == backward().dtype == np.float32


@pytest.mark.parametrize(
    ("logits", "targets"),
    [(np.ones((3, 4)), np.zeros(2, int)), (np.ones((0, 4)), np.zeros(0, int)), (np.ones(4), np.zeros(4))],
)
def test_masked_lm_names_shapes_that_do_not_fit(logits, targets):
    with pytest.raises(InputError, match=r"logits \(.*\) and targets \(.*\) must be \(n, V\) and \(n,\)"):
        masked_lm(logits, targets)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint16])
@pytest.mark.parametrize("wrong", [-1, -100, 7, 8])
def test_masked_lm_names_a_target_that_is_no_token(wrong, dtype):
    targets = np.array([0, wrong, 6]).astype(dtype)
    with pytest.raises(InputError, match=rf"targets hold {targets[1]}; expected integers from 0 to 6"):
        masked_lm(draw(3, 7), targets)


@pytest.mark.parametrize(
    ("targets", "found"),
    [(np.array([0.0, 1.0]), "an array of float64"), (np.array([True, False]), "an array of bool"), ([0, 1], "a list")],
)
def test_masked_lm_names_targets_that_are_no_integers(targets, found):
    with pytest.raises(InputError, match=f"targets is {found}; expected"):
        masked_lm(draw(2, 7), targets)
