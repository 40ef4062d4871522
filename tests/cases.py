"""Small cases, and the referee, shared by the tests of the numerical core."""

import numpy as np

from nano_simcse.data.batches import pack
from nano_simcse.encoder import EncoderConfig, encoder_forward, parameter_shapes
from nano_simcse.gradient_check import numeric_gradient, relative_error
from nano_simcse.layers import pool, tanh_head
from nano_simcse.losses import info_nce
from nano_simcse.masks import HEAD_SHIFT, Masks, row_labels
from nano_simcse.parameters import Parameters

GRADIENT_LIMIT = 1e-10  # relative error against differences, float64; the largest measured here is 7e-12
TINY = EncoderConfig(vocab_size=11, layers=2, width=4, heads=2, feed_forward=6, max_positions=8, head=True)
MASKS = Masks(seed=5, step=3, rate=0.3)


def difference_gradient(f, x, h=1e-3, entries=None):
    """Central differences at h and 2h, extrapolated to remove their h^2 term: good to about 1e-11 in float64."""
    return (4 * numeric_gradient(f, x, h, entries) - numeric_gradient(f, x, 2 * h, entries)) / 3


def backward_errors(f, *arguments, seed=1000, h=1e-3):
    """Relative error of each gradient of the layer f; its float64 arguments are the ones it must differentiate.

    f(*arguments) -> (y, backward). The scalar is sum(w y) with a fixed random w.
    """
    y, backward = f(*arguments)
    w = np.random.default_rng(seed).standard_normal(y.shape)
    gradients = backward(w)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    inputs = [a for a in arguments if isinstance(a, np.ndarray) and a.dtype == np.float64]
    assert len(inputs) == len(gradients)
    errors = []
    for x, gradient in zip(inputs, gradients, strict=True):
        assert gradient.shape == x.shape
        errors.append(relative_error(gradient, difference_gradient(lambda: (f(*arguments)[0] * w).sum(), x, h)))
    return errors


def loss_errors(f, *arguments, h=1e-3):
    """The same for a loss: f(*arguments) -> (loss, backward), backward() -> one gradient per float64 argument."""
    gradients = f(*arguments)[1]()
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    return [
        relative_error(gradient, difference_gradient(lambda: f(*arguments)[0], x, h))
        for x, gradient in zip(arguments, gradients, strict=True)
    ]


def random_parameters(config, seed=0, scale=0.5, dtype=np.float64):
    """Parameters far from their initial scale, so that no term of a gradient is negligible."""
    params = Parameters(parameter_shapes(config), dtype=np.float64)
    params.flat[...] = np.random.default_rng(seed).standard_normal(params.flat.size) * scale
    for name, view in params.items():
        if name.endswith("gamma"):
            view += 1
    return params.astype(dtype)


def random_rows(lengths, vocab_size, seed=0):
    """Token rows of the given lengths."""
    generator = np.random.default_rng(seed)
    return [generator.integers(0, vocab_size, n).astype(np.int32) for n in lengths]


def view_labels(sentences, views):
    """Mask labels of rows that stand view by view: all first views, then all second views, ..."""
    return row_labels(np.tile(np.arange(sentences), views), np.repeat(np.arange(views), sentences))


def view_batch(rows, views=2, **options):
    """Every row once per view."""
    return pack(rows * views, view_labels(len(rows), views), **options)


def simcse_step(params, config, batch, masks, *, pooling="cls", temperature=0.5, views=2, **options):
    """Encoder, pooling, tanh head and InfoNCE: (loss, backward); backward() -> Parameters of gradients."""
    hidden, encoder_back = encoder_forward(params, config, batch, masks)
    pooled, pool_back = pool(hidden, batch, pooling)
    z, head_back = tanh_head(pooled, params["head.weight"], params["head.bias"])
    n = len(z) // views
    hard = z[2 * n :] if views > 2 else None
    loss, loss_back = info_nce(z[:n], z[n : 2 * n], temperature, hard_negatives=hard, **options)

    def backward():
        gradients = params.zeros_like()
        dpooled, dweight, dbias = head_back(np.concatenate(loss_back()))
        gradients["head.weight"][...] += dweight
        gradients["head.bias"][...] += dbias
        return encoder_back(pool_back(dpooled), into=gradients)

    return loss, backward


def step_difference_gradient(step, params, h=1e-4):
    """Differences of step() -> (loss, backward), as Parameters; h is shorter than for a layer: a step bends more."""
    return Parameters(params.shapes, difference_gradient(lambda: step()[0], params.flat, h))


def gradient_errors(step, params, numeric=None):
    """Name -> relative error of each tensor's gradient against differences; step() -> (loss, backward)."""
    gradients = step()[1]()
    numeric = numeric or step_difference_gradient(step, params)
    return {name: relative_error(gradients[name], numeric[name]) for name in params}


def padded_masks(masks, labels, length, config):
    """Keep masks of all sites for rows padded to `length`, keyed by site, laid out as padded code expects:
    (B, T, D) for the tokenwise sites, (B, H, T, T) for the attention probabilities. Built from labels alone."""
    position = np.arange(length, dtype=np.uint64)
    tokens = (labels[:, None] + position).reshape(-1)
    heads = np.arange(config.heads, dtype=np.uint64) << np.uint64(HEAD_SHIFT)
    queries = (labels[:, None, None] + heads[:, None] + position).reshape(-1)
    out = {}
    for site in range(1 + 3 * config.layers):
        if site % 3 == 1:
            out[site] = masks.keep(site, queries, length).reshape(len(labels), config.heads, length, length)
        else:
            out[site] = masks.keep(site, tokens, config.width).reshape(len(labels), length, config.width)
    return out
