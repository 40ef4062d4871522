"""Small promises of training: what is checked at a step, how long a run is, how much of a text a window keeps."""

from types import SimpleNamespace

import numpy as np
import pytest
from tiny import TINY, write_sentences

from nano_simcse import TrainingConfig, train
from nano_simcse.errors import NonFiniteLoss
from nano_simcse.training import loop
from nano_simcse.training.runs import filled
from nano_simcse.training.samplers import random_window


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("global_norm", "inf", r"the loss is \d\.\d+ and the gradient norm inf at step 1;"),
        ("add_masked_lm", "nan", r"the loss is nan and the gradient norm \d+\.\d+ at step 1;"),
    ],
)
def test_the_norm_and_the_auxiliary_loss_must_be_finite_too(tmp_path, monkeypatch, name, value, words):
    monkeypatch.setattr(loop, name, lambda *arguments: np.float32(value))
    with pytest.raises(NonFiniteLoss, match=words):
        train(write_sentences(tmp_path / "text.txt"), out=tmp_path / "run", **TINY | {"mlm_weight": 0.1})


@pytest.mark.parametrize(("epochs", "steps"), [(1.5, 9), (2, 12), (0.01, 1)])
def test_an_epoch_is_every_whole_batch_once(epochs, steps):
    material = SimpleNamespace(positives="dropout", examples=range(50))  # 6 batches of 8; two examples are left over
    assert filled(TrainingConfig(epochs=epochs, batch=8), material).steps == steps


@pytest.mark.parametrize(("end", "kept"), [(0, 20), (1, 80)])
def test_a_window_keeps_a_fifth_to_four_fifths_of_a_text(end, kept):
    generator = SimpleNamespace(uniform=lambda *ends: ends[end], integers=lambda low, high: low)
    assert random_window(np.arange(102), generator, (0, 101)).tolist() == [0, *range(1, kept + 1), 101]
