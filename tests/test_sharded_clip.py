"""The CLIP loss from slices: any split of the batch gives the loss and the gradients of the whole."""

import math

import numpy as np
import pytest

from nano_simcse.errors import InputError
from nano_simcse.losses import clip_loss, sharded_clip_loss
from nano_simcse.losses.sharded_clip import all_gather

SPLITS = [[12], [6, 6], [3, 3, 3, 3], [1] * 12, [5, 1, 6]]


def draw(dtype=np.float64):
    generator = np.random.default_rng(1)
    return (2 * generator.standard_normal((12, 5))).astype(dtype), generator.standard_normal((12, 5)).astype(dtype)


def shards(x, split):
    return np.split(x, np.cumsum(split)[:-1])


@pytest.mark.parametrize("max_scale", [100.0, 2.0])
@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_slices_equal_the_whole(split, max_scale):
    q, k = draw()
    whole, whole_back = clip_loss(q, k, 1.2, max_scale=max_scale)
    loss, backward = sharded_clip_loss(shards(q, split), shards(k, split), 1.2, max_scale=max_scale)
    assert float(loss) == pytest.approx(float(whole), abs=0, rel=1e-13)
    dq, dk, da = backward()
    assert [len(d) for d in dq] == [len(d) for d in dk] == split
    for mine, theirs in zip((np.concatenate(dq), np.concatenate(dk)), whole_back(), strict=False):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-15)
    assert float(da) == pytest.approx(float(whole_back()[2]), abs=1e-15, rel=1e-11)


def test_a_gather_of_copies_keeps_the_loss_and_loses_the_role_as_candidate():
    q, k = draw()
    split = [3, 3, 3, 3]
    exact = sharded_clip_loss(shards(q, split), shards(k, split), 1.2)
    copies = sharded_clip_loss(shards(q, split), shards(k, split), 1.2, through_gather=False)
    assert float(copies[0]) == float(exact[0])
    assert copies[1]()[2] == exact[1]()[2]
    # what is left for the queries is the row half with the keys held fixed
    unit = q / np.linalg.norm(q, axis=1, keepdims=True), k / np.linalg.norm(k, axis=1, keepdims=True)
    z = math.exp(1.2) * unit[0] @ unit[1].T
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    d = math.exp(1.2) * (p - np.eye(12)) @ unit[1] / 24
    d = (d - unit[0] * (unit[0] * d).sum(axis=1, keepdims=True)) / np.linalg.norm(q, axis=1, keepdims=True)
    np.testing.assert_allclose(np.concatenate(copies[1]()[0]), d, rtol=1e-11, atol=1e-15)
    assert np.abs(np.concatenate(exact[1]()[0]) - d).max() > 0.01


def test_the_backward_of_a_gather_sums_over_workers():
    parts = [np.ones((2, 3)), 2 * np.ones((1, 3))]
    whole, backward = all_gather(parts)
    np.testing.assert_array_equal(whole, [[1] * 3, [1] * 3, [2] * 3])
    first, second = backward([np.arange(9.0).reshape(3, 3), 10 * np.ones((3, 3))])
    np.testing.assert_array_equal(first, [[10, 11, 12], [13, 14, 15]])
    np.testing.assert_array_equal(second, [[16, 17, 18]])


def test_float32_stays():
    q, k = draw(np.float32)
    loss, backward = sharded_clip_loss(shards(q, [6, 6]), shards(k, [6, 6]), 1.2)
    dq, dk, da = backward()
    assert {x.dtype for x in (loss, da, *dq, *dk)} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    ("queries", "keys", "message"),
    [
        ([], [], "0 shards of queries, 0 of keys; expected equally many"),
        ([np.ones((1, 2))], [np.ones((1, 2))] * 2, "1 shards of queries, 2 of keys"),
        ([np.ones((1, 2))], [np.ones((2, 2))], r"queries \(1, 2\) and keys \(2, 2\)"),
    ],
)
def test_shards_that_do_not_pair_up_are_named(queries, keys, message):
    with pytest.raises(InputError, match=message):
        sharded_clip_loss(queries, keys, 0.0)
