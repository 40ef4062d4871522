"""The masked-language-model auxiliary as a step adds it: what is hidden, under which masks, and every gradient."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from cases import MASKS, TINY, gradient_errors, random_parameters, random_rows, view_labels
from test_composed_step import STEP_LIMIT, masked_lm_step

from nano_simcse.data.batches import pack
from nano_simcse.masks import Masks, row_labels
from nano_simcse.parallel import Workers
from nano_simcse.training.mlm import hide_tokens
from nano_simcse.training.samplers import Step
from nano_simcse.training.step import Objective, add_masked_lm, contrastive_step

CONFIG = replace(TINY, layers=1, head=False, mlm=True)
CLS, SEP, PAD, MASK = range(4)
TOKENIZER = SimpleNamespace(cls_id=CLS, sep_id=SEP, pad_id=PAD, mask_id=MASK, vocab_size=CONFIG.vocab_size)
ROWS = random_rows([4, 2, 5, 4], CONFIG.vocab_size, seed=7)
WEIGHT, SEED = 0.7, 2  # this seed hides four tokens, in rows of different lengths


class Even:
    """A generator whose draws are spread evenly over [0, 1), in order; its integers are `number`, again and again."""

    def __init__(self, number=0):
        self.number = number

    def random(self, size):
        return (np.arange(size) + 0.5) / size

    def integers(self, low, high, size):
        assert (low, high) == (0, 11)
        return np.full(size, self.number)


def encoder_of(params):
    return SimpleNamespace(params=params, config=CONFIG, device="cpu", tokenizer=TOKENIZER)


def masked_lm_alone(params, masks, views=2, weight=WEIGHT):
    """(loss, gradients) that add_masked_lm adds to nothing."""
    step, gradients = Step(ROWS * views, view_labels(len(ROWS), views), views, None), params.zeros_like()
    generator, objective = np.random.default_rng(SEED), Objective("mean", 0.5, mlm_weight=weight)
    return add_masked_lm(encoder_of(params), step, objective, masks, gradients, generator), gradients


def test_of_a_thousand_tokens_150_are_chosen_and_120_of_them_become_the_mask():
    ids = np.full(1000, 5, np.int32)
    hidden, places, targets = hide_tokens(ids, [CLS, SEP, PAD], MASK, 11, Even(9))
    assert places.tolist() == list(range(150)) and targets.tolist() == [5] * 150
    assert hidden.tolist() == [MASK] * 120 + [9] * 15 + [5] * 865  # 15 of the last are chosen and stay
    assert (ids == 5).all()


def test_special_tokens_are_never_hidden_and_one_of_the_others_always():
    row = np.array([CLS, 7, PAD, 8, SEP], np.int32)
    for seed in range(50):
        _, places, targets = hide_tokens(row, [CLS, SEP, PAD], MASK, 11, np.random.default_rng(seed))
        assert places.tolist() in ([1], [3], [1, 3]) and targets.tolist() == row[places].tolist()
    ends = row[[0, -1]]
    hidden, places, targets = hide_tokens(ends, [CLS, SEP, PAD], MASK, 11, Even())
    assert hidden.tolist() == ends.tolist() and len(places) == len(targets) == 0


def test_gradient_of_the_contrastive_loss_and_the_weighted_auxiliary_together():
    """Every parameter, so the word table too, which both ends of the network write to."""
    params, objective = random_parameters(CONFIG, seed=2), Objective("mean", 0.5, mlm_weight=WEIGHT)
    step = Step(ROWS * 2, view_labels(len(ROWS), 2), 2, None)

    def whole():
        gradients, generator = params.zeros_like(), np.random.default_rng(SEED)
        loss, _ = contrastive_step(encoder_of(params), step, objective, MASKS, [gradients], workers)
        mlm = add_masked_lm(encoder_of(params), step, objective, MASKS, gradients, generator)
        return loss + WEIGHT * mlm, lambda: gradients

    with Workers(1) as workers:
        errors = gradient_errors(whole, params)
    assert max(errors.values()) <= STEP_LIMIT, errors


def test_the_weight_multiplies_the_gradient_and_leaves_the_loss_alone():
    params = random_parameters(CONFIG, seed=2)
    (loss, once), (same, four_times) = (masked_lm_alone(params, MASKS, weight=w) for w in (0.5, 2))
    assert float(loss) == float(same) and once.flat.any()
    np.testing.assert_array_equal(four_times.flat, 4 * once.flat)


@pytest.mark.parametrize(
    ("mode", "views", "view"), [("independent", 2, 2), ("independent", 3, 3), ("shared", 2, 0), ("shared", 2, 1)]
)
def test_the_hidden_text_passes_under_the_masks_of_one_more_view(mode, views, view):
    """Worked out from the documented pieces: the rows as hidden, labelled as view number `view`."""
    params, masks = random_parameters(CONFIG, seed=2), Masks(5, 3, 0.3, mode)
    ids, places, targets = hide_tokens(np.concatenate(ROWS), [CLS, SEP, PAD], MASK, 11, np.random.default_rng(SEED))
    lengths = [len(row) for row in ROWS]
    batch = pack(np.split(ids, np.cumsum(lengths)[:-1]), row_labels(np.arange(4), np.full(4, view)))
    packed = np.array([batch.first[row] + place for row, n in enumerate(lengths) for place in range(n)])
    expected, backward = masked_lm_step(params, CONFIG, batch, masks, packed[places], targets)
    loss, gradients = masked_lm_alone(params, masks, views, weight=1)
    assert float(loss) == float(expected)
    np.testing.assert_array_equal(gradients.flat, backward().flat)
