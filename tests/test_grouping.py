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


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("width", [3, 16, 384, 1024])
def test_equal_rows_are_duplicates_at_a_cosine_of_one(dtype, width):
    for seed in range(20):
        x = np.random.default_rng(seed).standard_normal((8, width)).astype(dtype)
        pairs, _ = near_duplicates(np.concatenate([x, x]), 1.0)
        assert pairs.tolist() == [[i, i + 8] for i in range(8)]


def test_the_allowance_for_rounding_is_small():
    x = np.array([[1.0, 0.0], [1.0, 1e-6]])  # a cosine of 1 - 5e-13
    assert len(near_duplicates(x, 1.0)[0]) == 0 and len(near_duplicates(x, 1 - 1e-12)[0]) == 1


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


@pytest.mark.parametrize("rounds", [1, 2, 3, 50])
def test_labels_centres_and_objective_belong_together(rounds):
    x = np.random.default_rng(1).standard_normal((200, 4))
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    found = spherical_kmeans(x, 9, seed=2, rounds=rounds, starts=1)
    cosines = unit @ found.centres.T
    np.testing.assert_array_equal(found.label, cosines.argmax(axis=1))
    assert found.objective[-1] == pytest.approx(cosines.max(axis=1).mean(), rel=1e-14)
    assert len(found.objective) == rounds + 1 if rounds < 50 else len(found.objective) < 50
    np.testing.assert_allclose(np.linalg.norm(found.centres, axis=1), 1)


def test_a_limit_on_the_rounds_does_not_change_what_has_converged():
    x = np.random.default_rng(1).standard_normal((60, 4))
    free = spherical_kmeans(x, 6, starts=1)
    tight = spherical_kmeans(x, 6, starts=1, rounds=len(free.objective) - 1)
    for name in ("label", "centres", "objective"):
        np.testing.assert_array_equal(getattr(free, name), getattr(tight, name))


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
    with pytest.raises(InputError, match="embeddings are 2 wide, but the labels are rows of width 3"):
        zero_shot(x, np.eye(3))
    for name in ("clusters", "rounds", "starts"):
        with pytest.raises(InputError, match=f"{name} is 0; expected a whole number of at least 1"):
            spherical_kmeans(x, **{"clusters": 1, name: 0})


@pytest.mark.parametrize("use", [
    lambda x: near_duplicates(x, 0.5), lambda x: spherical_kmeans(x, 1), lambda x: zero_shot(x, np.eye(2)),
])  # fmt: skip
def test_a_row_of_nan_is_refused(use):
    with pytest.raises(InputError, match="embeddings row 1 holds a NaN"):
        use(np.array([[1.0, 0.0], [np.nan, 1.0]]))


def test_a_label_of_nan_is_refused():
    with pytest.raises(InputError, match="label_embeddings row 0 holds a NaN"):
        zero_shot(np.eye(2), np.full((2, 2), np.nan))
