"""The whole step, sentence ids to loss, against central differences of every parameter in float64.

Dropout is on with a fixed mask, lengths are mixed, parameters are far from their initial scale.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from cases import MASKS, TINY, gradient_errors, random_parameters, random_rows, simcse_step, view_batch

from nano_simcse.encoder import encoder_forward
from nano_simcse.layers import POOLINGS
from nano_simcse.losses import info_nce
from nano_simcse.masks import Masks
from nano_simcse.training.mlm import mlm_loss
from nano_simcse.training.samplers import Step
from nano_simcse.training.step import Objective, contrastive_loss

# The largest error measured over all cases and tensors is 1.0e-9 (most are below 1e-10).
STEP_LIMIT = 5e-9

ONE_LAYER = replace(TINY, layers=1)
ROWS = random_rows([4, 2, 5, 4], TINY.vocab_size, seed=7)

CASES = {
    **{f"pooling {name}": (ONE_LAYER, {"pooling": name}, {}) for name in POOLINGS if name != "cls"},
    "two layers, cls": (TINY, {"pooling": "cls"}, {}),
    "two layers, avg_first_last, padded": (TINY, {"pooling": "avg_first_last"}, {"multiple": 4}),
    "padded, mean": (ONE_LAYER, {"pooling": "mean"}, {"multiple": 4}),
    "temperature .05": (ONE_LAYER, {"temperature": 0.05}, {}),
    "hard negatives": (ONE_LAYER, {"views": 3}, {}),
    "everything": (
        replace(ONE_LAYER, gelu="tanh"),
        {
            "views": 3,
            "log_weight": math.log(2),
            "symmetric": True,
            "exclude": np.eye(4, 8, k=1, dtype=bool),
        },
        {},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_gradient_of_every_parameter_of_the_step(name):
    config, options, packing = CASES[name]
    params = random_parameters(config)
    batch = view_batch(ROWS, options.get("views", 2), **packing)
    errors = gradient_errors(lambda: simcse_step(params, config, batch, MASKS, **options), params)
    assert max(errors.values()) <= STEP_LIMIT, errors


@pytest.mark.parametrize("mode", ["shared", "off"])
def test_gradient_of_the_step_in_the_other_mask_modes(mode):
    params, masks = random_parameters(ONE_LAYER), Masks(5, 3, 0.3, mode)
    batch = view_batch(ROWS)
    errors = gradient_errors(lambda: simcse_step(params, ONE_LAYER, batch, masks), params)
    assert max(errors.values()) <= STEP_LIMIT, errors


def masked_lm_step(params, config, batch, masks, places, targets):
    """Encoder, masked-language-model head and its loss: (loss, backward); backward() -> Parameters of gradients."""
    hidden, encoder_back = encoder_forward(params, config, batch, masks)
    loss, loss_back = mlm_loss(params, config, hidden[-1], places, targets)

    def backward():
        gradients = params.zeros_like()
        return encoder_back(loss_back(1, gradients), into=gradients)

    return loss, backward


def test_masked_lm_through_the_encoder_and_the_tied_table():
    config = replace(TINY, layers=1, head=False, mlm=True)
    params, batch = random_parameters(config, seed=2), view_batch(ROWS)
    places, targets = np.array([1, 4, 5, 11, 20]), np.array([3, 3, 0, 10, 7])
    errors = gradient_errors(lambda: masked_lm_step(params, config, batch, MASKS, places, targets), params)
    assert max(errors.values()) <= STEP_LIMIT, errors


def test_a_gradient_that_enters_only_at_the_embeddings_skips_the_layers():
    params, batch = random_parameters(TINY), view_batch(ROWS)
    w = np.random.default_rng(3).standard_normal((len(batch.ids), TINY.width))

    def step():
        hidden, backward = encoder_forward(params, TINY, batch, MASKS)
        return (hidden[0] * w).sum(), lambda: backward([w, None, None])

    assert max(gradient_errors(step, params).values()) <= STEP_LIMIT
    assert not any(g.any() for name, g in step()[1]().items() if name.startswith(("layers", "head")))


def test_gradients_of_all_hidden_states_at_once():
    params, batch = random_parameters(TINY), view_batch(ROWS)
    weights = [np.random.default_rng(s).standard_normal((len(batch.ids), TINY.width)) for s in range(3)]

    def step():
        hidden, backward = encoder_forward(params, TINY, batch, MASKS)
        return sum((h * w).sum() for h, w in zip(hidden, weights, strict=True)), lambda: backward(weights)

    assert max(gradient_errors(step, params).values()) <= STEP_LIMIT


def test_the_loss_of_a_step_leaves_out_what_its_sampler_excludes():
    z = np.random.default_rng(4).standard_normal((10, 3))
    exclude = np.zeros((5, 5), bool)
    exclude[0, 3] = exclude[4, 1] = True
    loss, dz = contrastive_loss(z, Step([], None, 2, exclude), Objective("mean", 0.5))
    expected, backward = info_nce(z[:5], z[5:], 0.5, exclude=exclude)
    assert float(loss) == float(expected)
    np.testing.assert_array_equal(dz, np.concatenate(backward()))
    assert float(loss) < float(contrastive_loss(z, Step([], None, 2, None), Objective("mean", 0.5))[0]) - 0.01
