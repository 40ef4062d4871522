"""Distance to the nearest normal rows: values by hand, thresholds, evidence, and what a score refuses to be."""

import numpy as np
import pytest

from nano_simcse.errors import InputError
from nano_simcse.neighbours import NeighbourScores, NormalReference, quantile_threshold


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def test_scores_equal_the_definition():
    reference, x = draw(30, 4), draw(7, 4, seed=1)
    unit = reference / np.linalg.norm(reference, axis=1, keepdims=True)
    for row, score in zip(x, NormalReference(reference, k=3).scores(x).values, strict=True):
        distances = sorted(np.linalg.norm(row / np.linalg.norm(row) - r) for r in unit)
        assert score == pytest.approx(np.mean(distances[:3]), rel=1e-12)


def test_length_does_not_matter_and_the_caller_keeps_its_rows():
    reference, x = draw(20, 3), draw(5, 3, seed=1)
    before = reference.copy()
    index = NormalReference(reference, k=2)
    np.testing.assert_allclose(index.scores(7 * x).values, index.scores(x).values, rtol=1e-12)
    np.testing.assert_array_equal(reference, before)


def test_evidence_is_ordered_and_ties_keep_the_order_of_rows():
    ids, distances = NormalReference(np.array([[0.0, 1], [1, 0], [0, 2], [-1, 0]]), k=4).evidence(np.array([[0.0, 5]]))
    assert ids.tolist() == [[0, 2, 1, 3]]
    np.testing.assert_allclose(distances, [[0, 0, np.sqrt(2), np.sqrt(2)]], atol=1e-15)


def test_a_near_duplicate_keeps_its_digits():
    row, step = np.array([[1.0, 0.0]]), 1e-9
    _, distance = NormalReference(row, k=1).evidence(np.array([[1.0, step]]))
    assert distance[0, 0] == pytest.approx(step, rel=1e-6)  # sqrt(2 - 2 cos) would give 0


def test_without_self_leaves_a_row_out_of_its_own_neighbours():
    reference = draw(12, 3)
    index = NormalReference(reference, k=1)
    assert index.scores(reference).values.max() < 1e-7
    ids, _ = index.evidence(reference, without_self=True)
    assert (ids[:, 0] != np.arange(12)).all()
    with pytest.raises(InputError, match="without_self"):
        index.evidence(reference[:5], without_self=True)


def test_extending_the_reference_takes_its_alarm_away():
    index = NormalReference(np.array([[1.0, 0.0]]), k=1)
    new = np.array([[0.0, 1.0]])
    assert index.scores(new).values[0] == pytest.approx(np.sqrt(2))
    index.extend(new)
    assert len(index) == 2 and index.scores(new).values[0] == 0


@pytest.mark.parametrize("quantile, rank", [(0.5, 5), (0.8, 8), (0.9, 9)])
def test_threshold_is_the_score_of_its_rank(quantile, rank):
    values = np.random.default_rng(0).permutation(np.arange(1.0, 10))
    limit = quantile_threshold(NeighbourScores(values), quantile)
    assert limit.value == rank and limit.count == 9


def test_threshold_needs_enough_scores():
    with pytest.raises(InputError, match="cannot resolve"):
        quantile_threshold(NeighbourScores(np.arange(9.0)), 0.95)
    with pytest.raises(InputError, match="quantile"):
        quantile_threshold(NeighbourScores(np.arange(9.0)), 1.0)


def test_above_is_strict_and_most_unusual_is_stable():
    scores = NeighbourScores(np.array([3.0, 1.0, 3.0, 2.0]))
    limit = quantile_threshold(NeighbourScores(np.array([1.0, 2.0, 3.0])), 0.5)
    assert scores.above(limit).tolist() == [True, False, True, False]
    assert scores.most_unusual(3).tolist() == [0, 2, 3]


def test_normal_share_counts_ties_against_the_alarm():
    held = NeighbourScores(np.array([1.0, 2.0, 2.0, 5.0]))
    share = NeighbourScores(np.array([0.0, 2.0, 6.0])).normal_share(held)
    np.testing.assert_allclose(share, [1.0, 4 / 5, 1 / 5])


@pytest.mark.parametrize("use", [
    lambda s: s + 1, lambda s: 1 + s, lambda s: np.ones(2) + s, lambda s: s * 0.5, lambda s: -s, lambda s: np.exp(s),
    lambda s: float(s), lambda s: s - s, lambda s: np.asarray(s), lambda s: 2**s, lambda s: np.float64(1) - s,
    lambda s: np.log(s), lambda s: np.add(s, 1), lambda s: np.add.reduce(s), lambda s: np.multiply(2, s, dtype=float),
    lambda s: np.array(s, copy=True), lambda s: np.mean(s),
])  # fmt: skip
def test_a_score_is_no_probability(use):
    with pytest.raises(InputError, match="a neighbour score is a distance, not a probability or likelihood"):
        use(NeighbourScores(np.array([0.5, 1.0])))


def test_versions_do_not_mix():
    rows = draw(10, 3)
    old, new = NormalReference(rows, 2, "old"), NormalReference(rows, 2, "new")
    limit = quantile_threshold(old.scores(rows), 0.5)
    with pytest.raises(InputError, match="'old'"):
        new.scores(rows).above(limit)
    with pytest.raises(InputError, match="version"):
        new.scores(rows).normal_share(old.scores(rows))
    with pytest.raises(InputError, match="re-embed"):
        old.extend(rows, version="new")


def test_a_number_of_numpy_counts_neighbours_too():
    rows = draw(10, 3)
    expected = NormalReference(rows, 3).scores(rows).values
    np.testing.assert_array_equal(NormalReference(rows, np.int64(3)).scores(rows).values, expected)


@pytest.mark.parametrize("k", [0, 11, True, 2.0, np.int64(11)])
def test_bad_k(k):
    with pytest.raises(InputError, match="k is"):
        NormalReference(draw(10, 3), k)


def test_bad_rows():
    with pytest.raises(InputError, match="row 1"):
        NormalReference(np.array([[1.0, 0], [0, 0]]), 1)
    with pytest.raises(InputError, match="shape"):
        NormalReference(np.ones(3), 1)
    with pytest.raises(InputError, match="width"):
        NormalReference(draw(4, 3), 1).extend(draw(4, 2))
    with pytest.raises(InputError, match="embeddings are 2 wide, but the reference holds rows of width 3"):
        NormalReference(draw(4, 3), 1).scores(draw(4, 2))


@pytest.mark.parametrize("use", [
    lambda index, x: NormalReference(x, 1), lambda index, x: index.extend(x), lambda index, x: index.scores(x),
    lambda index, x: index.evidence(x),
])  # fmt: skip
def test_a_row_of_nan_is_neither_normal_nor_scored(use):
    x = draw(3, 4, seed=1)
    x[2, 0] = np.nan
    index = NormalReference(draw(8, 4), 2)
    with pytest.raises(InputError, match="embeddings row 2 holds a NaN"):
        use(index, x)
    assert len(index) == 8


def test_scores_hold_no_nan_so_that_every_threshold_is_a_number():
    with pytest.raises(InputError, match="scores hold a NaN"):
        quantile_threshold(NeighbourScores(np.array([0.1, np.nan, 0.3])), 0.5)


def test_no_rows_have_no_scores():
    index = NormalReference(draw(8, 4), 2)
    assert index.scores(np.empty((0, 4))).values.shape == (0,)
    assert [part.shape for part in index.evidence(np.empty((0, 4)))] == [(0, 2), (0, 2)]
