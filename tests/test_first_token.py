"""The fast last layer, for [CLS] readings, beside the plain one: same numbers, same masks, same gradients."""

import numpy as np
import pytest
from cases import MASKS, TINY, random_parameters, random_rows, view_batch

from nano_simcse.encoder import EncoderConfig, encoder_forward
from nano_simcse.layers import gelu, pool
from nano_simcse.masks import Masks
from nano_simcse.model import embed

LENGTHS = (5, 2, 7, 5, 3, 8)


@pytest.mark.parametrize("masks", [None, MASKS, Masks(5, 3, 0.3, "shared")])
@pytest.mark.parametrize("multiple", [1, 4, 8])
def test_first_only_equals_the_first_tokens_of_the_whole(masks, multiple):
    params = random_parameters(TINY)
    batch = view_batch(random_rows(LENGTHS, TINY.vocab_size), multiple=multiple)
    hidden, back = encoder_forward(params, TINY, batch, masks)
    pooled, pool_back = pool(hidden, batch, "cls_before_pooler")
    fast, fast_back = encoder_forward(params, TINY, batch, masks, first_only=True)
    assert fast[-1].shape == (12, TINY.width)
    np.testing.assert_allclose(fast[-1], pooled, rtol=0, atol=1e-13)
    d = np.random.default_rng(1).standard_normal(pooled.shape)
    plain, quick = back(pool_back(d)), fast_back(d)
    for name in params:
        scale = max(1.0, np.abs(plain[name]).max())
        assert np.abs(plain[name] - quick[name]).max() <= 1e-12 * scale, name


def test_one_layer_has_nothing_below_it():
    config = EncoderConfig(vocab_size=11, layers=1, width=4, heads=2, feed_forward=6, max_positions=8)
    params = random_parameters(config)
    batch = view_batch(random_rows(LENGTHS, config.vocab_size))
    hidden, back = encoder_forward(params, config, batch, MASKS)
    fast, fast_back = encoder_forward(params, config, batch, MASKS, first_only=True)
    np.testing.assert_allclose(fast[-1], hidden[-1][batch.first], rtol=0, atol=1e-13)
    d = np.random.default_rng(1).standard_normal(fast[-1].shape)
    full = np.zeros_like(hidden[-1])
    full[batch.first] = d
    np.testing.assert_allclose(fast_back(d).flat, back(full).flat, rtol=0, atol=1e-12)


@pytest.mark.parametrize("pooling", ["cls", "cls_before_pooler"])
def test_cls_readings_of_the_model_take_the_fast_path(pooling, monkeypatch):
    """And no token but the first is asked of the last layer's feed-forward block."""
    params = random_parameters(TINY)
    rows = random_rows(LENGTHS, TINY.vocab_size)
    seen = []

    def counting_gelu(x, *options, **more):
        seen.append(len(x))
        return gelu(x, *options, **more)

    monkeypatch.setattr("nano_simcse.encoder.gelu", counting_gelu)
    z, _ = embed(params, TINY, view_batch(rows), pooling, MASKS, training=True)
    assert seen == [2 * sum(LENGTHS), 2 * len(LENGTHS)]
    assert z.shape == (12, 4)
