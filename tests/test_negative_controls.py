"""The referee must catch the classic mistakes: each is built in on purpose, and the error it makes is stated.

The limits of the honest code are 1e-10 (a layer) and 5e-9 (a step); every mistake here misses by more than 0.05.
"""

import sys
from dataclasses import replace

import numpy as np
import pytest
from cases import (
    MASKS,
    TINY,
    backward_errors,
    gradient_errors,
    loss_errors,
    random_parameters,
    random_rows,
    simcse_step,
    step_difference_gradient,
    view_batch,
)

from nano_simcse import encoder, self_attention
from nano_simcse.gradient_check import numeric_gradient, relative_error
from nano_simcse.layers import attention, dropout, embedding, layer_norm, linear, normalize, softmax
from nano_simcse.losses import info_nce

CONFIG = replace(TINY, layers=1)


def module_of(function):
    return sys.modules[function.__module__]


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.fixture(scope="module", autouse=True)
def honest():
    """Parameters, batch and differences of one step: the forward is right in every control, so once is enough."""
    params = random_parameters(CONFIG)
    batch = view_batch(random_rows([4, 2, 5, 4], CONFIG.vocab_size, seed=7))
    return params, batch, step_difference_gradient(lambda: simcse_step(params, CONFIG, batch, MASKS), params)


@pytest.fixture
def step_errors(honest):
    params, batch, numeric = honest
    return lambda: gradient_errors(lambda: simcse_step(params, CONFIG, batch, MASKS), params, numeric)


def test_the_honest_step_passes(step_errors):
    assert max(step_errors().values()) < 5e-9


# --- the mask of dropout ----------------------------------------------------------------------------------------


def dropout_without_mask_in_backward(x, keep, scale):
    y, backward = dropout(x, keep, scale)
    return y, backward if keep is None else lambda dy: dy * scale


def test_dropping_the_mask_from_the_backward_of_dropout():
    keep = np.random.default_rng(1).random((7, 5)) >= 0.3
    assert backward_errors(lambda x: dropout_without_mask_in_backward(x, keep, 1 / 0.7), draw(7, 5))[0] > 0.3


def test_dropping_the_mask_from_the_backward_of_the_step(monkeypatch, step_errors):
    monkeypatch.setattr(self_attention, "dropout", dropout_without_mask_in_backward)
    assert max(step_errors().values()) > 0.1


def test_dropping_the_mask_of_the_probabilities(monkeypatch, step_errors):
    def broken(q, k, v, keep_keys=None, keep=None, scale=1.0, out=None):
        context, _ = attention(q, k, v, keep_keys, keep, scale, out)
        return context, attention(q, k, v, keep_keys)[1]

    monkeypatch.setattr(self_attention, "attention", broken)
    errors = step_errors()
    assert errors["layers.0.attention.qkv.weight"] > 0.1
    assert errors["head.weight"] < 1e-9  # what lies above the attention is untouched


# --- the Jacobian of normalise, the keys' share -----------------------------------------------------------------


def normalize_without_jacobian(x):
    y, _ = normalize(x)
    return y, lambda dy: dy / np.sqrt((x * x).sum(axis=1, keepdims=True))


def test_dropping_the_projection_from_normalise():
    assert backward_errors(normalize_without_jacobian, draw(6, 5))[0] > 0.3


def test_dropping_the_projection_from_normalise_inside_the_loss(monkeypatch, step_errors):
    monkeypatch.setattr(module_of(info_nce), "normalize", normalize_without_jacobian)
    q, k = draw(6, 5, seed=1), draw(6, 5, seed=2)
    assert min(loss_errors(lambda q, k: info_nce(q, k, 0.3), q, k)) > 0.1
    assert max(step_errors().values()) > 0.1


def test_dropping_the_share_of_the_keys(monkeypatch, step_errors):
    def stop_gradient(q, k, temperature, **options):
        loss, backward = info_nce(q, k, temperature, **options)
        return loss, lambda: (backward()[0], np.zeros_like(k))

    q, k = draw(6, 5, seed=1), draw(6, 5, seed=2)
    errors = loss_errors(lambda q, k: stop_gradient(q, k, 0.3), q, k)
    assert errors[0] < 1e-10
    assert errors[1] == 1.0  # all of it is missing
    monkeypatch.setitem(simcse_step.__globals__, "info_nce", stop_gradient)
    errors = step_errors()
    assert min(error for name, error in errors.items() if name != "embeddings.type") > 0.05, errors


def test_dropping_the_share_of_the_negatives(monkeypatch):
    row_loss = module_of(info_nce).row_loss

    def pull_only(*arguments):
        loss, d = row_loss(*arguments)
        return loss, np.diag(np.diagonal(d))

    monkeypatch.setattr(module_of(info_nce), "row_loss", pull_only)
    q, k = draw(6, 5, seed=1), draw(6, 5, seed=2)
    assert min(loss_errors(lambda q, k: info_nce(q, k, 0.3), q, k)) > 0.1


# --- other classics ---------------------------------------------------------------------------------------------


def test_summing_the_softmax_jacobian_over_the_wrong_axis():
    def broken(scores):
        p, _ = softmax(scores)

        def backward(dp):
            product = dp * p
            return product - p * product.sum(axis=-2, keepdims=True)

        return p, backward

    assert backward_errors(broken, 2 * draw(3, 5, 5))[0] > 0.1


def test_forgetting_the_root_of_the_head_width_in_the_backward():
    def broken(q, k, v):
        context, backward = attention(q, k, v)
        return context, lambda do: (backward(do)[0] * q.shape[-1] ** 0.5, *backward(do)[1:])

    errors = backward_errors(broken, *(draw(3, 2, 4, 5, seed=s) for s in range(3)))
    assert errors[0] > 1
    assert max(errors[1:]) < 1e-10


def layer_norm_without_mean_term(x, gamma, beta, eps=1e-12):
    y, backward = layer_norm(x, gamma, beta, eps)
    r = 1 / np.sqrt(x.var(axis=1, keepdims=True) + eps)
    return y, lambda dy: (backward(dy)[0] + r * (dy * gamma).mean(axis=1, keepdims=True), *backward(dy)[1:])


def test_dropping_the_mean_term_of_layer_norm(monkeypatch, step_errors):
    errors = backward_errors(layer_norm_without_mean_term, draw(6, 5), draw(5, seed=1), draw(5, seed=2))
    assert errors[0] > 0.1
    assert max(errors[1:]) < 1e-10
    monkeypatch.setattr(encoder, "layer_norm", layer_norm_without_mean_term)
    assert max(step_errors().values()) > 0.1


def test_dropping_the_variance_term_of_layer_norm():
    def broken(x, gamma, beta):
        y, backward = layer_norm(x, gamma, beta)
        xhat, r = (y - beta) / gamma, 1 / x.std(axis=1, keepdims=True)
        return y, lambda dy: (
            backward(dy)[0] + r * xhat * (dy * gamma * xhat).mean(axis=1, keepdims=True),
            *backward(dy)[1:],
        )

    assert backward_errors(broken, draw(6, 5), draw(5, seed=1), draw(5, seed=2))[0] > 0.1


def test_assigning_instead_of_adding_the_gradients_of_a_repeated_token(monkeypatch, step_errors):
    def assign(target, ids, rows):
        target[ids] = rows

    monkeypatch.setattr(module_of(embedding), "scatter_add", assign)
    assert backward_errors(lambda table: embedding(table, np.array([1, 3, 1, 1, 0])), draw(5, 4))[0] > 0.3
    errors = step_errors()
    assert errors["embeddings.word"] > 0.3
    assert errors["embeddings.position"] > 0.3
    assert errors["embeddings.norm.gamma"] < 5e-9


def test_transposing_a_weight_in_the_backward_of_linear():
    def broken(x, weight, bias):
        y, backward = linear(x, weight, bias)
        return y, lambda dy: (dy @ weight, *backward(dy)[1:])

    assert backward_errors(broken, draw(7, 5), draw(5, 5, seed=1), draw(5, seed=2))[0] > 0.3


def test_losing_a_residual_path(monkeypatch, step_errors):
    def without_input_gradient(*arguments):
        y, backward = linear(*arguments)
        return y, lambda dy: (np.zeros_like(backward(dy)[0]), *backward(dy)[1:])

    monkeypatch.setattr(encoder, "linear", without_input_gradient)
    assert max(step_errors().values()) > 0.1


# --- the referee itself -----------------------------------------------------------------------------------------


def test_relative_error_does_not_hide_nan_and_needs_the_right_scale():
    reference = np.array([1.0, -4.0])
    assert relative_error(np.array([1.0, -4.0]), reference) == 0.0
    assert relative_error(np.array([1.0, -2.0]), reference) == 0.5
    assert not relative_error(np.array([np.nan, -4.0]), reference) <= 1e9
    assert relative_error(np.array([1.0, 2.0]), np.array([np.nan, 4.0])) == 0.5  # not probed: not judged
    assert relative_error(np.array([0.25]), np.zeros(1)) == 0.25


def test_numeric_gradient_restores_x_and_refuses_a_copy():
    x = draw(3, 4)
    before = x.copy()
    gradient = numeric_gradient(lambda: (x**2).sum(), x, entries=[0, 5])
    np.testing.assert_array_equal(x, before)
    np.testing.assert_allclose(gradient.flat[[0, 5]], 2 * x.flat[[0, 5]], rtol=1e-9)
    assert np.isnan(gradient).sum() == 10
    with pytest.raises(ValueError, match="contiguous"):
        numeric_gradient(lambda: 0.0, x.T)
