"""Near-duplicates, clusters and labels by description: values by hand and by brute force."""

import numpy as np
import pytest

from nano_simcse.errors import InputError
from nano_simcse.grouping import near_duplicates, spherical_kmeans, zero_shot


def on_circle(*degrees):
    angle = np.deg2rad(degrees)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def test_pairs_and_groups_by_hand():
    pairs, group = near_duplicates(on_circle(0, 180, 20, 40, 185) * [[1], [5], [2], [1], [3]], np.cos(np.deg2rad(25)))
    assert pairs.tolist() == [[0, 2], [1, 4], [2, 3]]
    assert group.tolist() == [0, 1, 0, 0, 1]  # 0 and 3 are 40 degrees apart, and in one chain


def test_pairs_equal_brute_force():
    x = np.random.default_rng(0).standard_normal((40, 3))
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    expected = [[i, j] for i in range(40) for j in range(i + 1, 40) if unit[i] @ unit[j] >= 0.9]
    pairs, group = near_duplicates(x, 0.9)
    assert pairs.tolist() == expected and (group[pairs[:, 0]] == group[pairs[:, 1]]).all()
    assert near_duplicates(x, 1.0)[0].shape[1] == 2


def test_three_bunches_are_found():
    rng = np.random.default_rng(0)
    centres = np.eye(5)[:3]
    truth = rng.integers(3, size=90)
    found = spherical_kmeans(centres[truth] + 0.05 * rng.standard_normal((90, 5)), 3)
    for k in range(3):
        assert len(set(truth[found.label == k])) == 1
    np.testing.assert_allclose(np.linalg.norm(found.centres, axis=1), 1)
    assert (np.diff(found.objective) >= -1e-12).all() and found.objective[-1] > 0.98


def test_clusters_are_a_fixed_point_and_repeat():
    x = np.random.default_rng(1).standard_normal((60, 4))
    found, again = spherical_kmeans(x, 6, seed=3), spherical_kmeans(x, 6, seed=3)
    np.testing.assert_array_equal(found.label, again.label)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_array_equal((unit @ found.centres.T).argmax(axis=1), found.label)
    for k in range(6):
        mean = unit[found.label == k].sum(axis=0)
        np.testing.assert_allclose(found.centres[k], mean / np.linalg.norm(mean), atol=1e-12)


def test_zero_shot_takes_the_nearest_description_and_its_lead():
    label, lead = zero_shot(on_circle(10, 80, 45), on_circle(0, 90))
    assert label.tolist() == [0, 1, 0]  # a tie goes to the first
    np.testing.assert_allclose(lead, [np.cos(np.deg2rad(10)) - np.cos(np.deg2rad(80))] * 2 + [0], atol=1e-12)


def test_errors():
    x = on_circle(0, 10)
    with pytest.raises(InputError, match="cosine"):
        near_duplicates(x, 1.5)
    with pytest.raises(InputError, match="3 clusters"):
        spherical_kmeans(x, 3)
    with pytest.raises(InputError, match="two descriptions"):
        zero_shot(x, x[:1])
    with pytest.raises(InputError, match="row 0"):
        near_duplicates(np.zeros((2, 2)), 0.5)
