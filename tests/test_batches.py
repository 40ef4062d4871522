"""Packing: what lies where, and that no result depends on it."""

import numpy as np
import pytest
from cases import MASKS, TINY, random_parameters, random_rows

from nano_simcse.data.batches import pack
from nano_simcse.encoder import encoder_forward
from nano_simcse.layers import POOLINGS, pool
from nano_simcse.masks import row_labels

ROWS = random_rows([3, 5, 1, 3, 8, 2, 5], TINY.vocab_size, seed=3)
LABELS = row_labels(np.array([0, 1, 2, 3, 0, 1, 2]), np.array([0, 0, 0, 0, 1, 1, 1]))
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def test_layout_by_hand():
    a, b, c, d = (np.array(x, np.int64) for x in ([7, 8, 9], [5], [1, 2, 3], [4, 4]))
    batch = pack([a, b, c, d])
    assert batch.ids.tolist() == [5, 4, 4, 7, 8, 9, 1, 2, 3]
    assert batch.positions.tolist() == [0, 0, 1, 0, 1, 2, 0, 1, 2]
    assert batch.first.tolist() == [3, 0, 6, 1]
    assert [(g.start, g.count, g.length, g.rows.tolist(), g.keep) for g in batch.groups] == [
        (0, 1, 1, [1], None),
        (1, 1, 2, [3], None),
        (3, 2, 3, [0, 2], None),
    ]
    assert batch.groups[2].tokens == slice(3, 9)
    assert (batch.sequences >> np.uint64(24)).tolist() == [1, 3, 0, 2]
    assert batch.tokens.tolist() == [1 << 24, 3 << 24, (3 << 24) + 1, 0, 1, 2, 2 << 24, (2 << 24) + 1, (2 << 24) + 2]


def test_padding_to_a_multiple_by_hand():
    batch = pack([np.array([7, 8, 9]), np.array([5]), np.array([1, 2, 3, 4, 6])], multiple=4, pad_id=99)
    assert batch.ids.tolist() == [7, 8, 9, 99, 5, 99, 99, 99, 1, 2, 3, 4, 6, 99, 99, 99]
    assert batch.first.tolist() == [0, 4, 8]
    short, long = batch.groups
    assert (short.length, short.count, long.length, long.count) == (4, 2, 8, 1)
    assert short.keep.tolist() == [[True, True, True, False], [True, False, False, False]]
    assert long.keep.sum() == 5


def test_rounding_up_stops_at_the_longest_row_a_model_takes():
    lengths = [g.length for g in pack(random_rows([3, 5, 8, 9], 9), multiple=4, longest=10).groups]
    assert lengths == [4, 8, 10]
    assert [g.length for g in pack(random_rows([3, 12], 9), multiple=4, longest=10).groups] == [4, 12]


def test_padding_is_not_recorded_where_there_is_none():
    assert pack(random_rows([4, 8], 9), multiple=4).groups[0].keep is None


def test_to_the_cpu_is_the_batch_itself():
    batch = pack(ROWS)
    assert batch.to("cpu") is batch


@pytest.mark.parametrize("rows", [[], [np.array([1, 2]), np.array([], int)]])
def test_nothing_to_pack_is_refused(rows):
    with pytest.raises(ValueError, match="at least one row, and every row at least one token"):
        pack(rows)


def embed(rows, labels, pooling, masks=MASKS, weights=None, **packing):
    """Pooled rows, and the gradient of sum(weights * pooled)."""
    params = random_parameters(TINY)
    batch = pack(rows, labels, **packing)
    hidden, backward = encoder_forward(params, TINY, batch, masks)
    pooled, pool_back = pool(hidden, batch, pooling)
    weights = np.random.default_rng(2).standard_normal((len(ROWS), TINY.width)) if weights is None else weights
    return pooled, backward(pool_back(weights))


@pytest.mark.parametrize("masks", [MASKS, None], ids=["dropout", "off"])
@pytest.mark.parametrize("multiple", [2, 4, 8])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_packed_equals_padded(pooling, multiple, masks):
    packed, packed_gradients = embed(ROWS, LABELS, pooling, masks)
    padded, padded_gradients = embed(ROWS, LABELS, pooling, masks, multiple=multiple)
    np.testing.assert_allclose(padded, packed, **CLOSE)
    np.testing.assert_allclose(padded_gradients.flat, packed_gradients.flat, **CLOSE)


def test_packed_equals_padded_up_to_the_last_position():
    packed, packed_gradients = embed(ROWS, LABELS, "mean")
    padded, padded_gradients = embed(ROWS, LABELS, "mean", multiple=16, longest=TINY.max_positions)
    np.testing.assert_allclose(padded, packed, **CLOSE)
    np.testing.assert_allclose(padded_gradients.flat, packed_gradients.flat, **CLOSE)


def test_the_padding_token_does_not_matter_and_gets_no_gradient():
    one, one_gradients = embed(ROWS, LABELS, "mean", multiple=8, pad_id=0)
    other, other_gradients = embed(ROWS, LABELS, "mean", multiple=8, pad_id=10)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(one_gradients.flat, other_gradients.flat, **CLOSE)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_order_of_the_rows_does_not_matter(pooling):
    weights = np.random.default_rng(2).standard_normal((len(ROWS), TINY.width))
    pooled, gradients = embed(ROWS, LABELS, pooling, weights=weights)
    order = np.random.default_rng(5).permutation(len(ROWS))
    moved, moved_gradients = embed([ROWS[i] for i in order], LABELS[order], pooling, weights=weights[order])
    np.testing.assert_allclose(moved, pooled[order], **CLOSE)
    np.testing.assert_allclose(moved_gradients.flat, gradients.flat, **CLOSE)


@pytest.mark.parametrize("cuts", [[1], [3], [2, 5], [1, 2, 3, 4, 5, 6]])
def test_splitting_the_batch_does_not_matter(cuts):
    weights = np.random.default_rng(2).standard_normal((len(ROWS), TINY.width))
    pooled, gradients = embed(ROWS, LABELS, "mean", weights=weights)
    parts = [
        embed([ROWS[i] for i in part], LABELS[part], "mean", weights=weights[part])
        for part in np.split(np.arange(len(ROWS)), cuts)
    ]
    np.testing.assert_allclose(np.concatenate([p for p, _ in parts]), pooled, **CLOSE)
    np.testing.assert_allclose(sum(g.flat for _, g in parts), gradients.flat, **CLOSE)


def test_rows_without_their_own_labels_would_be_dropped_differently():
    """The control of the two tests above: labels by place in the batch break the invariance."""
    order = np.random.default_rng(5).permutation(len(ROWS))
    pooled, _ = embed(ROWS, LABELS, "mean")
    moved, _ = embed([ROWS[i] for i in order], LABELS, "mean")
    assert np.abs(moved - pooled[order]).max() > 0.1
