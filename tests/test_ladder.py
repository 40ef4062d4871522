"""The sanity ladder: what an untrained and a just-trained encoder must do before any result is believed."""

import math

import numpy as np
import pytest
from cases import random_rows, simcse_step, view_batch, view_labels

from nano_simcse.data.batches import pack
from nano_simcse.encoder import EncoderConfig, encoder_forward, init_parameters
from nano_simcse.layers import pool
from nano_simcse.losses import info_nce
from nano_simcse.masks import Masks
from nano_simcse.optim import Adam

CONFIG = EncoderConfig(vocab_size=40, layers=2, width=16, heads=2, max_positions=10, head=True)
ROWS = random_rows([5, 3, 7, 5, 4, 7, 6, 3], 40, seed=1)


def views(masks, pooling="mean"):
    """First and second view of the eight sentences."""
    params, batch = init_parameters(CONFIG, seed=0, dtype=np.float64), view_batch(ROWS)
    pooled, _ = pool(encoder_forward(params, CONFIG, batch, masks)[0], batch, pooling)
    return np.split(pooled, 2)


def cosines(a, b):
    return (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_two_masks_give_two_views_of_every_sentence(pooling):
    a, b = views(Masks(0, 0, 0.1), pooling)
    assert (cosines(a, b) < 0.999).all()
    assert (cosines(a, b) > 0.5).all()  # and yet the same sentence


@pytest.mark.parametrize("masks", [Masks(0, 0, 0.1, "shared"), Masks(0, 0, 0.1, "off"), Masks(0, 0, 0.0), None])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_one_shared_mask_and_no_dropout_give_identical_views(masks, pooling):
    a, b = views(masks, pooling)
    np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


def test_a_shared_mask_is_still_dropout():
    assert np.abs(views(Masks(0, 0, 0.1, "shared"))[0] - views(None)[0]).max() > 0.01


def test_evaluation_is_deterministic_and_training_repeats_only_with_its_seed_and_step():
    np.testing.assert_array_equal(views(None)[0], views(None)[0])
    np.testing.assert_array_equal(views(Masks(1, 2, 0.1))[0], views(Masks(1, 2, 0.1))[0])
    assert np.abs(views(Masks(1, 2, 0.1))[0] - views(Masks(1, 3, 0.1))[0]).max() > 0.01


def test_evaluation_after_a_training_forward_is_the_same_as_before():
    before = views(None)[0]
    views(Masks(0, 0, 0.3))
    np.testing.assert_array_equal(views(None)[0], before)


def test_a_batch_of_one_sentence_repeated_sits_at_the_chance_level():
    params = init_parameters(CONFIG, seed=0, dtype=np.float64)
    batch = view_batch([ROWS[0]] * 8)
    loss, _ = simcse_step(params, CONFIG, batch, None, temperature=0.05)
    assert float(loss) == pytest.approx(math.log(8), abs=0, rel=1e-12)


def test_a_collapsed_encoder_sits_at_the_chance_level_whatever_the_temperature():
    params = init_parameters(CONFIG, seed=0, dtype=np.float64)
    params["head.weight"][...] = 0
    params["head.bias"][...] = 1
    for temperature in (1.0, 0.05, 0.001):
        loss, backward = simcse_step(params, CONFIG, view_batch(ROWS), Masks(0, 0, 0.1), temperature=temperature)
        assert float(loss) == pytest.approx(math.log(8), abs=0, rel=1e-14)
        assert np.abs(backward().flat).max() < 1e-10  # collapse is a stationary point


def test_aligned_positives_cost_less_than_misaligned_ones():
    a, b = views(Masks(0, 0, 0.1))
    aligned = float(info_nce(a, b, 0.05)[0])
    for shift in range(1, 8):
        assert aligned < float(info_nce(a, np.roll(b, shift, axis=0), 0.05)[0]) - 1


def test_gradients_reach_every_parameter_of_encoder_and_head():
    params, batch = init_parameters(CONFIG, seed=0, dtype=np.float64), view_batch(ROWS)
    gradients = simcse_step(params, CONFIG, batch, Masks(0, 0, 0.1), temperature=0.05)[1]()
    used = np.unique(np.concatenate(ROWS))
    for name, table, rows in (("word", 40, used), ("position", 10, np.arange(7)), ("type", 2, [0])):
        reached = (gradients[f"embeddings.{name}"] != 0).all(axis=1)
        np.testing.assert_array_equal(reached, np.isin(np.arange(table), rows), err_msg=name)
        assert not gradients[f"embeddings.{name}"][~reached].any()
    for name, gradient in gradients.items():
        if not name.startswith("embeddings.") or "norm" in name:
            assert (gradient != 0).all(), name
    # the keys' biases shift all scores of a row alike, so softmax must not see them: rounding only
    for layer in range(2):
        q, k, v = np.split(gradients[f"layers.{layer}.attention.qkv.bias"], 3)
        assert np.abs(k).max() < 1e-12 * np.abs(v).max()
        assert np.abs(q).min() > 0 and np.abs(v).min() > 1e-9


def test_every_head_and_both_views_take_part():
    params, batch = init_parameters(CONFIG, seed=0, dtype=np.float64), view_batch(ROWS)
    hidden, encoder_back = encoder_forward(params, CONFIG, batch, Masks(0, 0, 0.1))
    pooled, pool_back = pool(hidden, batch, "mean")
    dq, dk = info_nce(pooled[:8], pooled[8:], 0.05)[1]()
    first = encoder_back(pool_back(np.concatenate([dq, 0 * dk])))
    second = encoder_back(pool_back(np.concatenate([0 * dq, dk])))
    both = encoder_back(pool_back(np.concatenate([dq, dk])))
    for name in ("layers.0.attention.qkv.weight", "embeddings.word"):
        assert first[name].any() and second[name].any()
        np.testing.assert_allclose(first[name] + second[name], both[name], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_eight_sentences_can_be_learned_by_heart(dtype):
    """From 1.3 (chance is log 8 = 2.08) to below 0.01 in 60 steps, dropout on."""
    params = init_parameters(CONFIG, seed=0, dtype=dtype)
    batch, adam, losses = pack(ROWS * 2, view_labels(8, 2)), Adam(params), []
    for step in range(60):
        loss, backward = simcse_step(params, CONFIG, batch, Masks(0, step, 0.1), temperature=0.05)
        losses.append(float(loss))
        adam.step(backward(), 3e-3)
    assert losses[0] > 0.5
    assert np.mean(losses[-5:]) < 0.01
