"""Recall by popularity, coverage and effective items: values by hand."""

import numpy as np
import pytest

from nano_simcse.catalogue import coverage, effective_items, listed, popularity_groups, recall_by_group
from nano_simcse.errors import InputError

LISTS = np.array([[0, 1], [0, 2], [0, 1]])


def test_groups_hold_equal_shares():
    assert popularity_groups(np.array([6, 1, 3, 1, 1])).tolist() == [0, 2, 1, 2, 2]
    counts = np.random.default_rng(0).integers(0, 50, 400)
    group = popularity_groups(counts, 4)
    share = np.bincount(group, counts) / counts.sum()
    np.testing.assert_allclose(share, 0.25, atol=0.01)
    assert counts[group == 0].min() >= counts[group == 1].max()


def test_recall_by_group_counts_pairs():
    relevant = np.array([[1, 0, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0]], bool)
    recall = recall_by_group(LISTS, relevant, np.array([0, 0, 1, 1]))
    np.testing.assert_allclose(recall, [100, 100 / 3, 100 * 4 / 6])
    assert np.isnan(recall_by_group(LISTS, relevant & [True, True, False, False], np.array([0, 0, 1, 1]))[1])


def test_coverage_and_effective_items():
    assert coverage(LISTS, 4) == 75
    same = np.tile(np.arange(5), (10, 1))
    assert effective_items(same, 100) == pytest.approx(5) and coverage(same, 100) == 5
    assert effective_items(np.arange(100).reshape(20, 5), 100) == pytest.approx(100)
    entropy = np.log(2) / 2 + np.log(3) / 3 + np.log(6) / 6  # places: 3, 2 and 1 of 6
    assert effective_items(LISTS, 4) == pytest.approx(np.exp(entropy))


def test_listed_and_errors():
    assert listed(LISTS, 4).tolist() == [[1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 0, 0]]
    with pytest.raises(InputError, match="below 2"):
        coverage(LISTS, 2)
    with pytest.raises(InputError, match="counts"):
        popularity_groups(np.zeros(3))
