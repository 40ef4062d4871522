"""The gradient cache: gradients of the whole batch, memory of a chunk, and what is not the same thing."""

import json
import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from cases import TINY, random_parameters, random_rows, view_labels
from tiny import TINY as RUN
from tiny import write_sentences

from nano_simcse import train
from nano_simcse.encoder import EncoderConfig, init_parameters
from nano_simcse.errors import InputError
from nano_simcse.gradient_check import relative_error
from nano_simcse.masks import Masks
from nano_simcse.parallel import Workers
from nano_simcse.training import gradient_cache, loop
from nano_simcse.training.gradient_cache import cached_step
from nano_simcse.training.samplers import Step
from nano_simcse.training.step import Objective, contrastive_step

MASKS = Masks(seed=5, step=3, rate=0.3)
LENGTHS = [4, 2, 5, 4, 7, 3, 3, 8, 2, 6, 5]


def made_step(lengths=LENGTHS, views=2, exclude=None, vocab=TINY.vocab_size):
    rows = random_rows(lengths, vocab, seed=7)
    if views == 3:
        rows = [*rows * 2, *random_rows(lengths[::-1], vocab, seed=8)]
    return Step(rows if views == 3 else rows * 2, view_labels(len(lengths), views), views, exclude)


def made_encoder(config=TINY, dtype=np.float64):
    return SimpleNamespace(params=random_parameters(config, dtype=dtype), config=config, device="cpu")


def gradients_of(step_function, encoder, step, objective, *more, masks=MASKS, threads=1):
    """(loss, z, gradients) of one step, gradients as Parameters."""
    buffers = [encoder.params.zeros_like() for _ in range(threads)]
    for buffer in buffers:
        buffer.flat.fill(7)  # overwritten, not added to
    with Workers(threads) as workers:
        loss, z = step_function(encoder, step, objective, masks, buffers, workers, *more)
    return loss, z, buffers[0]


@pytest.mark.parametrize("chunk", [1, 3, 10])
@pytest.mark.parametrize(
    ("views", "pooling", "threads"), [(2, "mean", 1), (2, "cls", 2), (3, "avg_first_last", 2), (3, "cls", 1)]
)
def test_the_gradient_is_that_of_the_whole_batch(views, pooling, threads, chunk):
    exclude = np.zeros((11, 11 * (views - 1)), bool)
    exclude[2, 5] = exclude[5, 2] = True
    step, objective = made_step(views=views, exclude=exclude), Objective(pooling, 0.2, 0.5)
    encoder = made_encoder()
    loss, z, whole = gradients_of(contrastive_step, encoder, step, objective)
    chunked_loss, chunked_z, chunked = gradients_of(cached_step, encoder, step, objective, chunk, threads=threads)
    assert float(chunked_loss) == pytest.approx(float(loss), rel=1e-12)
    np.testing.assert_allclose(chunked_z, z, rtol=0, atol=1e-12 * np.abs(z).max())
    assert relative_error(chunked.flat, whole.flat) <= 1e-12


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("chunk", [1, 8])
def test_in_float32_the_difference_is_one_of_rounding(pooling, chunk):
    """|difference| / |gradient| at fresh parameters and dropout 0.1, where the whole batch itself is off by as much."""
    config = EncoderConfig(vocab_size=50, layers=3, width=32, heads=2, max_positions=16, head=True)
    encoder = SimpleNamespace(params=init_parameters(config), config=config, device="cpu")
    lengths = np.random.default_rng(0).integers(4, 17, 64)
    step, objective, masks = made_step(list(lengths), vocab=50), Objective(pooling, 0.05), Masks(0, 0, 0.1)
    _, _, whole = gradients_of(contrastive_step, encoder, step, objective, masks=masks)
    _, _, chunked = gradients_of(cached_step, encoder, step, objective, chunk, masks=masks, threads=2)
    assert chunked.flat.dtype == np.float32
    assert np.linalg.norm(chunked.flat - whole.flat) <= 1e-6 * np.linalg.norm(whole.flat)


def test_accumulating_the_gradients_of_small_batches_is_something_else():
    """A negative control, and why: a row of a batch of 5 has 4 negatives, and log 5 is not log 10."""
    step, objective, encoder = made_step(LENGTHS[:10]), Objective("mean", 0.2), made_encoder()
    loss, _, whole = gradients_of(contrastive_step, encoder, step, objective)
    total, losses = encoder.params.zeros_like(), []
    for part in (range(5), range(5, 10)):
        rows = [*part, *(i + 10 for i in part)]
        small = Step([step.rows[i] for i in rows], step.labels[rows], 2, None)
        small_loss, _, gradients = gradients_of(contrastive_step, encoder, small, objective)
        total.flat[...] += gradients.flat / 2
        losses.append(float(small_loss))
    assert float(loss) > np.mean(losses) + 0.1
    assert relative_error(total.flat, whole.flat) > 0.1


def test_a_second_pass_under_other_masks_is_something_else(monkeypatch):
    """A negative control: masks drawn afresh in the second pass, as an ordinary generator would draw them."""
    step, objective, encoder = made_step(), Objective("mean", 0.2), made_encoder()
    _, _, whole = gradients_of(contrastive_step, encoder, step, objective)
    embed_rows = gradient_cache.embed_rows

    def redrawn(encoder, params, step, part, objective, masks, grad=True):
        masks = replace(masks, step=masks.step + 1) if grad else masks
        return embed_rows(encoder, params, step, part, objective, masks, grad)

    monkeypatch.setattr(gradient_cache, "embed_rows", redrawn)
    _, _, broken = gradients_of(cached_step, encoder, step, objective, 3)
    assert relative_error(broken.flat, whole.flat) > 0.1


def test_memory_is_that_of_a_chunk():
    """Traced by tracemalloc: 16 times the batch adds embeddings, not activations."""
    config = EncoderConfig(vocab_size=50, layers=3, width=32, heads=2, max_positions=16)
    encoder, objective = made_encoder(config, np.float32), Objective("mean", 0.2)
    lengths = np.tile([4, 16, 7, 12, 9, 5, 14, 10], 16)

    def peak(function, count, *more):
        step = made_step(list(lengths[:count]), vocab=50)
        tracemalloc.start()
        try:
            gradients_of(function, encoder, step, objective, *more)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    small, large = peak(contrastive_step, 8), peak(contrastive_step, 128)
    assert large > 6 * small
    assert peak(cached_step, 128, 8) < 1.25 * small


def lines_of(path):
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_chunked_run_is_the_plain_run_and_resumes(tmp_path, monkeypatch):
    text = write_sentences(tmp_path / "text.txt", 120)
    options = RUN | {"batch": 16, "steps": 4, "eval_every": 2, "threads": 2}
    plain = train(text, out=tmp_path / "plain", **options)
    chunked = train(text, out=tmp_path / "chunked", **options, chunk=3)
    for ours, theirs in zip(lines_of(chunked.path), lines_of(plain.path), strict=True):
        if "loss" in ours:
            assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-4)
            assert ours["gradient_norm"] == pytest.approx(theirs["gradient_norm"], rel=1e-3)

    one_step = loop.Training.one_step

    def die(self, workers):
        if self.done == 3:
            raise MemoryError
        return one_step(self, workers)

    monkeypatch.setattr(loop.Training, "one_step", die)
    with pytest.raises(MemoryError):
        train(text, out=tmp_path / "parts", **options, chunk=3)
    monkeypatch.undo()
    assert train(out=tmp_path / "parts", resume=True).finished
    for name in ("model.safetensors", "last.safetensors", "metrics.jsonl"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "chunked" / name).read_bytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"chunk": -1}, "chunk is -1; expected at least 0"),
        ({"chunk": 2.5}, "chunk is 2.5; expected a whole number"),
        ({"chunk": 4, "mlm_weight": 0.1}, "chunk is 4 beside mlm_weight 0.1; expected one of them to be 0"),
    ],
)
def test_what_is_refused(tmp_path, options, words):
    with pytest.raises(InputError, match=words):
        train(write_sentences(tmp_path / "text.txt"), out=tmp_path / "run", **RUN | options)
