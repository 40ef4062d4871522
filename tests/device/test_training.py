"""Whole runs on the stand-in for CuPy: training, checkpoints, resuming, encoding, evaluation, and what is copied."""

import os
import signal
from dataclasses import dataclass

import numpy as np
import pytest
from tiny import TINY, sentences, write_sentences

from nano_simcse import SentenceEncoder, train
from nano_simcse.backend import to_host
from nano_simcse.checkpoint import load_parameters, load_state, save_parameters, save_state
from nano_simcse.evaluation import evaluate_sts
from nano_simcse.training import loop

from .array import DeviceArray
from .parity import DEVICE, encoder_on, in_device_order, small_config

FILES = ("model.safetensors", "last.safetensors", "metrics.jsonl")
LOGGED = 5  # loss and norm for the check that they are finite and for the line, and the embeddings z


@pytest.fixture
def text(tmp_path):
    return write_sentences(tmp_path / "text.txt")


def contents(folder):
    return {name: (folder / name).read_bytes() for name in FILES}


@pytest.mark.parametrize("options", [
    {"pooling": "mean"}, {"pooling": "cls", "head": True, "masks": "shared", "weight_decay": 0.1},
    {"positives": "crop", "mlm_weight": 0.1, "pooling": "avg_first_last"},
    {"chunk": 3}, {"queue": 24}, {"queue": 24, "chunk": 3, "pooling": "cls"},
], ids=["mean", "cls head", "crop mlm", "gradient cache", "queue", "queue in chunks"])  # fmt: skip
def test_a_run_writes_the_bytes_that_a_run_on_numpy_writes(text, tmp_path, monkeypatch, meter, options):
    in_device_order(monkeypatch)
    train(text, out=tmp_path / "host", **TINY | options)
    result = train(text, out=tmp_path / "device", **TINY | options, device="cuda:0")
    assert isinstance(result.encoder.params.flat, DeviceArray)
    assert contents(tmp_path / "host") == contents(tmp_path / "device")


def test_a_stopped_run_resumes_on_the_device_as_if_it_had_not_stopped(text, tmp_path, monkeypatch, meter):
    train(text, out=tmp_path / "whole", **TINY, device="cuda")
    one_step = loop.Training.one_step

    def step_then_ctrl_c(self, workers):
        line = one_step(self, workers)
        if self.done == 7:
            os.kill(os.getpid(), signal.SIGINT)
        return line

    monkeypatch.setattr(loop.Training, "one_step", step_then_ctrl_c)
    assert not train(text, out=tmp_path / "parts", **TINY, device="cuda").finished
    monkeypatch.setattr(loop.Training, "one_step", one_step)
    assert train(out=tmp_path / "parts", resume=True).finished
    assert contents(tmp_path / "whole") == contents(tmp_path / "parts")


def test_a_step_copies_nothing_to_the_host_but_what_it_logs(text, tmp_path, monkeypatch, meter):
    one_step, copies = loop.Training.one_step, []

    def counted(self, workers):
        before = meter.downloads
        line = one_step(self, workers)
        copies.append((line is not None, meter.downloads - before))
        return line

    monkeypatch.setattr(loop.Training, "one_step", counted)
    train(text, out=tmp_path / "run", **TINY, device="cuda")
    assert len(copies) == TINY["steps"]
    assert [count for logged, count in copies if not logged] == [0] * (TINY["steps"] - 3)
    assert all(0 < count <= LOGGED for logged, count in copies if logged)


@dataclass(frozen=True)
class Pair:
    sentence1: str
    sentence2: str
    score: float
    subset: str | None = None


def test_encoding_and_evaluation(text, tmp_path, monkeypatch, meter):
    in_device_order(monkeypatch)
    train(text, out=tmp_path / "run", **TINY)
    on_host, on_device = (SentenceEncoder.load(tmp_path / "run", device=d) for d in ("cpu", "cuda"))
    assert on_device.device == "cuda:0" and isinstance(on_device.params.flat, DeviceArray)
    texts = sentences(40)
    # one thread, so that the host splits its batches as the device does
    monkeypatch.setattr("nano_simcse.model.available_cores", lambda: 1)
    before = meter.downloads
    embeddings = on_device.encode(texts, batch_size=16, normalize_embeddings=True)
    assert meter.downloads - before == 3  # one a batch
    assert isinstance(embeddings, np.ndarray)
    np.testing.assert_array_equal(embeddings, on_host.encode(texts, batch_size=16, normalize_embeddings=True))
    np.testing.assert_array_equal(on_device.encode(texts[0]), on_host.encode(texts[0]))
    assert on_device.fingerprint() == on_host.fingerprint()
    pairs = [Pair(a, b, float(i % 6)) for i, (a, b) in enumerate(zip(texts[:20], texts[20:], strict=True))]
    assert evaluate_sts(on_device, pairs) == evaluate_sts(on_host, pairs)


def test_saving_a_model_on_the_device_writes_the_same_file(text, tmp_path, meter):
    train(text, out=tmp_path / "run", **TINY | {"steps": 1})
    files = []
    for device in ("cpu", "cuda"):
        SentenceEncoder.load(tmp_path / "run", device=device).save(tmp_path / device)
        files.append((tmp_path / device / "model.safetensors").read_bytes())
    assert files[0] == files[1]


def test_checkpoints_make_the_round_trip_between_devices(tmp_path, meter):
    params = encoder_on(DEVICE, small_config()).params
    save_parameters(tmp_path / "model", params)
    progress = {"step": 3, "best_step": 0, "best_score": None}
    save_state(tmp_path / "state", {"parameters": params}, progress)
    for device in ("cpu", DEVICE):
        loaded = load_parameters(tmp_path / "model", params.shapes, device)
        assert isinstance(loaded.flat, DeviceArray) == (device == DEVICE)
        np.testing.assert_array_equal(to_host(loaded.flat), to_host(params.flat))
        empty = loaded.zeros_like()
        assert load_state(tmp_path / "state", {"parameters": empty}) == progress
        np.testing.assert_array_equal(to_host(empty.flat), to_host(params.flat))


def test_the_second_device_makes_its_arrays_on_itself(text, tmp_path):
    from .library import installed

    with installed(devices=2):
        result = train(text, out=tmp_path / "run", **TINY | {"steps": 1}, device="cuda:1")
        assert result.encoder.params.flat.device.id == 1
