"""The encoder against a plain per-sentence implementation, its closures, its counts, its bad input."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from cases import MASKS, TINY, padded_masks, random_parameters, random_rows, view_batch, view_labels
from scipy.special import ndtr

from nano_simcse.data.batches import pack
from nano_simcse.encoder import (
    EncoderConfig,
    dropout_inventory,
    encoder_forward,
    init_parameters,
    parameter_shapes,
)
from nano_simcse.errors import InputError
from nano_simcse.masks import Masks

ROWS = random_rows([4, 2, 5, 4], TINY.vocab_size, seed=7)


def plain_norm(x, params, name, eps):
    centred = x - x.mean(axis=-1, keepdims=True)
    return (
        centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps) * params[f"{name}.gamma"]
        + params[f"{name}.beta"]
    )


def plain_encoder(params, config, row, keep=None, scale=1.0):
    """One sentence at a time, head by head; keep: site -> mask of this sentence. Returns the L + 1 states (T, D)."""

    def drop(site, x):
        return x if keep is None else x * keep[site] * scale

    x = np.stack([params["embeddings.word"][t] + params["embeddings.position"][i] for i, t in enumerate(row)])
    x = drop(0, plain_norm(x + params["embeddings.type"][0], params, "embeddings.norm", config.eps))
    states, width = [x], config.width // config.heads
    for layer in range(config.layers):
        name = f"layers.{layer}"
        qkv = x @ params[f"{name}.attention.qkv.weight"] + params[f"{name}.attention.qkv.bias"]
        q, k, v = np.split(qkv, 3, axis=1)
        context = []
        for head in range(config.heads):
            own = slice(head * width, (head + 1) * width)
            scores = np.exp(q[:, own] @ k[:, own].T / np.sqrt(width))
            p = scores / scores.sum(axis=1, keepdims=True)
            context.append((p if keep is None else p * keep[3 * layer + 1][head] * scale) @ v[:, own])
        y = np.concatenate(context, axis=1) @ params[f"{name}.attention.output.weight"]
        y = drop(3 * layer + 2, y + params[f"{name}.attention.output.bias"])
        a = plain_norm(x + y, params, f"{name}.attention.norm", config.eps)
        up = a @ params[f"{name}.feed_forward.up.weight"] + params[f"{name}.feed_forward.up.bias"]
        down = (up * ndtr(up)) @ params[f"{name}.feed_forward.down.weight"] + params[f"{name}.feed_forward.down.bias"]
        x = plain_norm(a + drop(3 * layer + 3, down), params, f"{name}.feed_forward.norm", config.eps)
        states.append(x)
    return states


@pytest.mark.parametrize("masks", [None, MASKS], ids=["off", "dropout"])
@pytest.mark.parametrize("multiple", [1, 4])
def test_hidden_states_equal_a_plain_implementation(masks, multiple):
    params, labels = random_parameters(TINY), view_labels(len(ROWS), 1)
    batch = pack(ROWS, labels, multiple=multiple)
    hidden, _ = encoder_forward(params, TINY, batch, masks)
    for i, row in enumerate(ROWS):
        keep = None
        if masks is not None:
            keep = {s: m[0] for s, m in padded_masks(masks, labels[[i]], len(row), TINY).items()}
        expected = plain_encoder(params, TINY, row, keep, 1.0 if masks is None else masks.scale)
        for got, want in zip(hidden, expected, strict=True):
            mine = got[batch.first[i] : batch.first[i] + len(row)]
            np.testing.assert_allclose(mine, want, rtol=1e-11, atol=1e-12)


def forward_and_weights(params, masks, seed):
    batch = view_batch(ROWS)
    hidden, backward = encoder_forward(params, TINY, batch, masks)
    return backward, np.random.default_rng(seed).standard_normal(hidden[-1].shape)


@pytest.mark.parametrize("first", [0, 1])
def test_two_forwards_never_mix_their_caches(first):
    params, steps = random_parameters(TINY), (Masks(1, 0, 0.3), Masks(1, 1, 0.3))
    alone = []
    for seed, masks in enumerate(steps):
        backward, weights = forward_and_weights(params, masks, seed)
        alone.append(backward(weights).flat)
    runs = [forward_and_weights(params, masks, seed) for seed, masks in enumerate(steps)]  # both forwards, then
    for i in (first, 1 - first):  # the backwards, in either order
        backward, weights = runs[i]
        np.testing.assert_array_equal(backward(weights).flat, alone[i])
    assert np.abs(alone[0] - alone[1]).max() > 0.1


def test_backward_twice_gives_the_same_bits_and_changes_no_input():
    params = random_parameters(TINY)
    before = params.flat.copy()
    backward, weights = forward_and_weights(params, MASKS, 0)
    kept = weights.copy()
    np.testing.assert_array_equal(backward(weights).flat, backward(weights).flat)
    np.testing.assert_array_equal(weights, kept)
    np.testing.assert_array_equal(params.flat, before)


def test_backward_adds_into_the_buffer_it_is_given():
    params = random_parameters(TINY)
    backward, weights = forward_and_weights(params, MASKS, 0)
    alone, buffer = backward(weights), params.zeros_like()
    buffer.flat[...] = 1.0
    assert backward(weights, into=buffer) is buffer
    np.testing.assert_allclose(buffer.flat, 1 + alone.flat, rtol=1e-13, atol=1e-13)
    backward(weights, into=buffer)
    np.testing.assert_allclose(buffer.flat, 1 + 2 * alone.flat, rtol=1e-13, atol=1e-13)


def test_without_a_backward_the_states_are_the_same():
    params, batch = random_parameters(TINY), view_batch(ROWS)
    with_grad, _ = encoder_forward(params, TINY, batch, MASKS)
    without, backward = encoder_forward(params, TINY, batch, MASKS, grad=False)
    assert backward is None
    for a, b in zip(with_grad, without, strict=True):
        np.testing.assert_array_equal(a, b)


def test_float32_agrees_with_float64():
    config = EncoderConfig(vocab_size=50, layers=2, width=32, heads=4, max_positions=12)
    params = random_parameters(config, scale=0.2)
    batch = view_batch(random_rows([9, 3, 12, 7], 50))
    weights = np.random.default_rng(1).standard_normal((len(batch.ids), 32))
    hidden, backward = encoder_forward(params, config, batch, MASKS)
    small, small_backward = encoder_forward(params.astype(np.float32), config, batch, MASKS)
    for a, b in zip(small, hidden, strict=True):
        assert a.dtype == np.float32
        np.testing.assert_allclose(a, b, atol=2e-5)
    exact, rough = backward(weights), small_backward(weights.astype(np.float32))
    for name in exact:
        assert rough[name].dtype == np.float32
        scale = np.abs(exact[name]).max()
        np.testing.assert_allclose(rough[name], exact[name], atol=3e-5 * max(scale, 1e-3), err_msg=name)


# --- initial parameters and configuration -----------------------------------------------------------------------


def test_initial_parameters():
    config = EncoderConfig(vocab_size=500, layers=1, width=64, heads=2, max_positions=100, head=True, mlm=True)
    params = init_parameters(config, seed=3)
    assert params.flat.dtype == np.float32
    for name, view in params.items():
        if name.endswith("gamma"):
            assert (view == 1).all(), name
        elif view.ndim == 1:
            assert not view.any(), name
        elif view.size > 1000:
            assert view.std() == pytest.approx(0.02, abs=0, rel=6 / np.sqrt(2 * view.size)), name
            assert abs(view.mean()) < 5 * 0.02 / np.sqrt(view.size), name
    np.testing.assert_array_equal(params.flat, init_parameters(config, seed=3).flat)
    np.testing.assert_array_equal(params.flat, init_parameters(config, seed=3, dtype=np.float64).flat)
    assert (params["head.weight"] != init_parameters(config, seed=4)["head.weight"]).all()


def test_parameter_count_of_bert_base_without_its_heads():
    config = EncoderConfig(vocab_size=30522, layers=12, width=768, heads=12)
    count = sum(int(np.prod(shape)) for shape in parameter_shapes(config).values())
    assert count == 108_891_648
    with_pooler = sum(int(np.prod(shape)) for shape in parameter_shapes(replace(config, head=True)).values())
    assert with_pooler == 109_482_240  # the size of bert-base-uncased


def test_feed_forward_is_four_widths_unless_given():
    assert EncoderConfig(vocab_size=9, width=12, heads=3).feed_forward == 48
    assert EncoderConfig(vocab_size=9, width=12, heads=3, feed_forward=7).feed_forward == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 10, "heads": 3}, "width 10 is not divisible by heads 3"),
        ({"layers": 0}, "layers is 0; expected at least 1"),
        ({"vocab_size": 0}, "vocab_size is 0; expected at least 1"),
        ({"heads": 0}, "heads is 0; expected at least 1"),
        ({"width": 257, "heads": 257}, "heads is 257; expected at most 256"),
    ],
)
def test_sizes_that_do_not_fit_are_named(options, message):
    with pytest.raises(InputError, match=message):
        EncoderConfig(**{"vocab_size": 9, **options})


# --- dropout sites ----------------------------------------------------------------------------------------------


def test_dropout_sites_and_draws_of_bert_base():
    """One pass of a 32-token sentence: in each of the 12 layers 12 heads x 32 x 32 attention probabilities and two
    tokenwise sites of 32 x 768, 737,280 units in all; the embeddings add 32 x 768 = 24,576, which makes 761,856."""
    sites = dropout_inventory(EncoderConfig(vocab_size=30522, layers=12, width=768, heads=12), [32])
    assert len(sites) == 37
    assert [site for site, _, _ in sites] == list(range(37))
    draws = {site: count for site, _, count in sites}
    assert draws[0] == 24_576
    assert sum(count for site, count in draws.items() if site > 0) == 737_280
    assert sum(draws.values()) == 761_856
    assert Counter(draws.values()) == {24_576: 25, 12_288: 12}
    assert sites[0][1] == "embeddings"
    assert [name for _, name, _ in sites[4:7]] == [
        "layers.1 attention probabilities",
        "layers.1 attention output",
        "layers.1 feed-forward output",
    ]


def test_the_inventory_is_what_a_forward_uses():
    used = {}

    class Counted(Masks):
        def keep(self, site, labels, width):
            keep = super().keep(site, labels, width)
            used[site] = keep.size
            return keep

        def keep_each(self, site, labels, widths):
            keeps = super().keep_each(site, labels, widths)
            used[site] = sum(keep.size for keep in keeps)  # fewer than it made: groups are hashed together
            return keeps

    encoder_forward(random_parameters(TINY), TINY, view_batch(ROWS), Counted(5, 3, 0.3))
    lengths = [len(row) for row in ROWS] * 2
    assert used == {site: count for site, _, count in dropout_inventory(TINY, lengths)}


def test_each_site_uses_the_mask_of_its_own_number():
    """Changing one site's mask changes the states above it and none below."""
    params, batch = random_parameters(TINY), view_batch(ROWS)
    base, _ = encoder_forward(params, TINY, batch, MASKS)

    class Altered(Masks):
        def keep(self, site, labels, width):
            keep = super().keep(site, labels, width)
            return ~keep if site == self.altered else keep

    for site in range(1 + 3 * TINY.layers):
        masks = Altered(5, 3, 0.3)
        object.__setattr__(masks, "altered", site)
        hidden, _ = encoder_forward(params, TINY, batch, masks)
        changed = [not np.array_equal(a, b) for a, b in zip(hidden, base, strict=True)]
        assert changed == [state >= -(-site // 3) for state in range(TINY.layers + 1)]
