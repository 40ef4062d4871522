"""The loss over named candidate sets, plain and fused: by hand, by brute force, by differences, and what it refuses."""

import math
import tracemalloc

import numpy as np
import pytest
from cases import GRADIENT_LIMIT, loss_errors
from scipy.special import logsumexp

from nano_simcse.errors import DegenerateTemperature, InputError
from nano_simcse.geometry import alignment, max_pair_cosine, mean_pair_cosine, uniformity
from nano_simcse.losses import CANDIDATE_SETS, FusedInfoNCE, candidate_info_nce, info_nce, pair_mask
from nano_simcse.losses.candidate_info_nce import pair_log_weights
from nano_simcse.losses.fused_info_nce import block_geometry


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def views(n=6, width=5, seed=0):
    a = draw(n, width, seed=seed)
    return 2 * a, a + 0.5 * draw(n, width, seed=seed + 1)


def brute_force(a, p, tau, candidates, log_weights=None, queue=None):
    """Row by row over a list of (logit, is the positive), in plain Python and SciPy."""
    def cos(x, y):
        return x @ y / np.linalg.norm(x) / np.linalg.norm(y)

    n, losses = len(a), []
    pool = [*p, *a, *([] if queue is None else queue)]
    for i in range(n):
        logits = []
        for j, c in enumerate(pool):
            in_set = j == i or j >= 2 * n or (j < n and candidates != "same-view") or (
                n <= j < 2 * n and candidates != "cross" and j != n + i)
            w = 0.0 if log_weights is None else log_weights[i, j]
            if in_set and w > -np.inf:
                logits.append(cos(a[i], c) / tau + w)
        losses.append(logsumexp(logits) - (cos(a[i], p[i]) / tau + (0.0 if log_weights is None else log_weights[i, i])))
    return np.mean(losses)


def weights(n, extra=0, seed=5):
    w = draw(n, 2 * n + extra, seed=seed)
    w[np.random.default_rng(seed).random(w.shape) < 0.2] = -np.inf
    w[np.arange(n), np.arange(n)] = 0.3
    return w


def options_of(weighted, extra):
    queue = draw(extra, 5, seed=9) if extra else None
    return {"log_weights": weights(6, extra) if weighted else None, "queue": queue}


CASES = [(name, w, q) for name in CANDIDATE_SETS for w in (False, True) for q in (0, 4)]


@pytest.mark.parametrize("candidates, weighted, extra", CASES)
@pytest.mark.parametrize("tau", [0.07, 1.0])
def test_value_equals_brute_force(candidates, weighted, extra, tau):
    a, p = views()
    options = options_of(weighted, extra)
    loss, _ = candidate_info_nce(a, p, tau, candidates=candidates, **options)
    assert float(loss) == pytest.approx(brute_force(a, p, tau, candidates, **options), rel=1e-12)


@pytest.mark.parametrize("candidates, weighted, extra", CASES)
def test_gradients_equal_central_differences(candidates, weighted, extra):
    a, p = views()
    options = options_of(weighted, extra)
    errors = loss_errors(lambda *x: candidate_info_nce(*x, 0.5, candidates=candidates, **options), a, p)
    assert max(errors) <= 5 * GRADIENT_LIMIT


def test_two_rows_by_hand():
    u = np.eye(2)
    for candidates, negatives in zip(CANDIDATE_SETS, (1, 1, 2), strict=True):
        loss = float(candidate_info_nce(u, u, 0.5, candidates=candidates)[0])
        assert loss == pytest.approx(math.log1p(negatives * math.exp(-2)), rel=1e-14)


def test_cross_is_info_nce_and_an_empty_queue_changes_nothing():
    a, p = views()
    expected, back = info_nce(a, p, 0.1)
    for queue in (None, np.empty((0, 5))):
        loss, backward = candidate_info_nce(a, p, 0.1, queue=queue)
        assert float(loss) == pytest.approx(float(expected), rel=1e-14)
        for x, y in zip(backward(), back(), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-15)


def test_a_candidate_named_twice_equals_a_log_weight():
    a, p = views(3)
    w = np.zeros((3, 8))
    w[:, 6] = math.log(2)
    twice = candidate_info_nce(a, p, 0.2, queue=np.concatenate([p[:1], p[:1], p[1:2]]))
    weighted = candidate_info_nce(a, p, 0.2, queue=p[:2], log_weights=w)
    assert float(twice[0]) == pytest.approx(float(weighted[0]), rel=1e-13)
    np.testing.assert_allclose(twice[1]()[0], weighted[1]()[0], rtol=1e-11)


@pytest.mark.parametrize("tau", [1.0, 1e-5, 1e-30])
def test_removing_a_pair_equals_deleting_it_at_any_temperature(tau):
    a, p = views(5)
    loss = float(candidate_info_nce(a, p, tau, candidates="both", log_weights=pair_log_weights([(0, 3)], 5))[0])
    rows = []
    for i in range(5):
        others = [j for j in range(5) if j != i and {i, j} != {0, 3}]
        pool = np.concatenate([p[[i]], p[others], a[others]])
        s = pool @ a[i] / np.linalg.norm(pool, axis=1) / np.linalg.norm(a[i])
        rows.append(logsumexp((s - s[0]) / tau))
    assert math.isfinite(loss) and loss == pytest.approx(np.mean(rows), rel=1e-9)


def test_collapse_is_the_chance_level_and_stationary():
    x = np.tile(draw(1, 4), (8, 1))
    for candidates, options in (("cross", 8), ("same-view", 8), ("both", 15)):
        for tau in (1.0, 0.05):
            loss, backward = candidate_info_nce(x, x, tau, candidates=candidates)
            assert float(loss) == pytest.approx(math.log(options), rel=1e-14)
            assert max(np.abs(g).max() for g in backward()) < 1e-14


@pytest.mark.parametrize("options, error, message", [
    ({"candidates": "all"}, InputError, "candidate set 'all' is not one of cross, same-view, both"),
    ({"temperature": 0.0}, DegenerateTemperature, "temperature is 0.0; expected a finite number above 0"),
    ({"temperature": math.nan}, DegenerateTemperature, "temperature is nan"),
    ({"temperature": 1e-310}, DegenerateTemperature, "temperature is 1e-310, so small that a logit overflows float64"),
    ({"positives": np.ones((3, 4))}, InputError, r"anchors \(3, 5\) and positives \(3, 4\)"),
    ({"anchors": np.ones((0, 5)), "positives": np.ones((0, 5))}, InputError, r"anchors \(0, 5\)"),
    ({"queue": np.ones((2, 4))}, InputError, r"queue \(2, 4\) must be \(Q, D\) with D = 5"),
    ({"log_weights": np.zeros((3, 3))}, InputError, r"one entry per candidate, \(3, 6\)"),
    ({"log_weights": np.full((3, 6), np.nan)}, InputError, "log_weights hold NaN"),
    ({"log_weights": np.full((3, 6), -np.inf)}, InputError, "remove the positive of row 0"),
    ({"anchors": np.zeros((3, 5))}, InputError, "row 0 is the zero vector"),
])  # fmt: skip
def test_bad_arguments_are_named(options, error, message):
    arguments = {"anchors": draw(3, 5), "positives": draw(3, 5), "temperature": 1.0, **options}
    with pytest.raises(error, match=message):
        candidate_info_nce(**arguments)


@pytest.mark.parametrize("pairs, message", [
    ([(1, 1)], r"pair \(1, 1\) would remove the positive of row 1"), ([(0, 3)], r"names a row outside 0 to 2"),
    ([(-1, 0)], "names a row outside 0 to 2"),
])  # fmt: skip
def test_bad_pairs_are_named(pairs, message):
    with pytest.raises(InputError, match=message):
        pair_mask(pairs, 3)


# ---- fused ----


@pytest.mark.parametrize("pairs", [(), ((0, 3), (3, 0), (1, 2))])
@pytest.mark.parametrize("tau", [0.05, 1.0, 1e-5])
@pytest.mark.parametrize("candidates", CANDIDATE_SETS)
def test_fused_equals_plain(candidates, tau, pairs):
    a, p = views()
    loss, backward = candidate_info_nce(a, p, tau, candidates=candidates, log_weights=pair_log_weights(pairs, 6))
    result = FusedInfoNCE()(a, p, tau, candidates=candidates, pairs=pairs)
    assert float(result.loss) == pytest.approx(float(loss), rel=1e-12)
    for x, y in zip(result.backward(), backward(), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12 * max(1, 1 / tau))
    single = FusedInfoNCE()(a.astype(np.float32), p.astype(np.float32), tau, candidates=candidates, pairs=pairs)
    assert single.loss.dtype == np.float32
    assert float(single.loss) == pytest.approx(float(loss), rel=2e-6, abs=1e-6)


def test_fused_counts_negatives_per_anchor():
    a, p = views()
    counts = {c: FusedInfoNCE()(a, p, 0.1, candidates=c, pairs=[(0, 3)]).negatives.tolist() for c in CANDIDATE_SETS}
    assert counts == {"cross": [4, 5, 5, 4, 5, 5], "same-view": [4, 5, 5, 4, 5, 5], "both": [8, 10, 10, 8, 10, 10]}


def test_fused_buffers_grow_and_are_reused_and_the_arguments_stay():
    loss_of = FusedInfoNCE()
    small, large = views(4), views(9)
    copies = [x.copy() for x in small]
    first = loss_of(*small, 0.1)
    gradients = first.backward()
    for x, y in zip(small, copies, strict=True):
        np.testing.assert_array_equal(x, y)
    held = loss_of.held_bytes
    loss_of(*large, 0.1)
    assert loss_of.held_bytes == 2 * 8 * 9 * 18 > held == 2 * 8 * 4 * 8
    with pytest.raises(InputError, match="backward of an earlier batch"):
        first.backward()
    again = loss_of(*small, 0.1)
    assert loss_of.held_bytes == 2 * 8 * 9 * 18 and float(again.loss) == float(first.loss)
    for x, y in zip(again.backward(), gradients, strict=True):
        np.testing.assert_array_equal(x, y)
    assert loss_of(*(x.astype(np.float32) for x in small), 0.1).loss.dtype == np.float32


def test_fused_similarity_is_a_copy_of_the_cosines():
    loss_of = FusedInfoNCE()
    with pytest.raises(InputError, match="no similarity matrix before the first batch"):
        loss_of.similarity()
    a, p = views()
    loss_of(a, p, 0.1)
    held = loss_of.similarity()
    np.testing.assert_allclose(np.diag(held[:, 6:]), 1, rtol=1e-12)
    held[:] = 9
    assert loss_of.similarity().max() < 1.01


def test_fused_makes_no_array_of_matrix_size_after_the_first_step():
    a, p = (x.astype(np.float32) for x in views(400, 8))
    loss_of = FusedInfoNCE()
    loss_of(a, p, 0.1)
    tracemalloc.start()
    loss_of(a, p, 0.1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * 400 * 800 * 4  # bool masks and (B, D) copies only


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_block_geometry_equals_the_geometry_of_the_rows(dtype, rtol):
    a, p = (x.astype(dtype) for x in views(40, 12))
    shape = FusedInfoNCE()(a, p, 0.07, geometry=True).geometry
    expected = alignment(a, p), uniformity(a), mean_pair_cosine(a), max_pair_cosine(a)
    got = shape.alignment, shape.uniformity, shape.mean_pair_cosine, shape.max_pair_cosine
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol)


def test_block_geometry_survives_a_wide_kernel_in_float32_and_one_row():
    x = np.eye(8, dtype=np.float32)
    for t in (2, 50, 60):
        assert block_geometry(x, x, x @ x.T, np.empty((8, 8), np.float32), t).uniformity == pytest.approx(-2 * t)
    one = np.ones((1, 1))
    alone = block_geometry(one, one, one, np.empty((1, 1)))
    assert math.isnan(alone.uniformity) and math.isnan(alone.mean_pair_cosine) and alone.alignment == 0


def test_fused_refuses_what_the_plain_loss_refuses():
    a, p = views()
    with pytest.raises(DegenerateTemperature):
        FusedInfoNCE()(a, p, -1.0)
    with pytest.raises(InputError, match="'cross' has no block of anchor cosines"):
        FusedInfoNCE()(a, p, 1.0, candidates="cross", geometry=True)
    with pytest.raises(InputError, match="would remove the positive"):
        FusedInfoNCE()(a, p, 1.0, pairs=[(2, 2)])
