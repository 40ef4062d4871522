"""The queue of past keys and the encoder that makes them."""

import numpy as np
import pytest
from cases import TINY, difference_gradient, random_rows, view_labels
from test_gradient_cache import MASKS, gradients_of, made_encoder
from tiny import TINY as RUN
from tiny import pairs, write_sentences

from nano_simcse import train
from nano_simcse.errors import InputError
from nano_simcse.gradient_check import relative_error
from nano_simcse.losses import info_nce
from nano_simcse.parallel import Workers
from nano_simcse.training import loop
from nano_simcse.training.gradient_cache import cached_step
from nano_simcse.training.queue import MomentumQueue
from nano_simcse.training.samplers import Step
from nano_simcse.training.step import Objective, contrastive_step, embed_rows

FILES = ("model.safetensors", "last.safetensors", "metrics.jsonl")
LENGTHS = [4, 2, 5, 3]


def made_step(texts=(0, 1, 2, 3), views=2, seed=7):
    rows = random_rows(LENGTHS * views, TINY.vocab_size, seed)
    return Step(rows, view_labels(4, views), views, None, np.repeat(np.array(texts)[:, None], views, axis=1))


def made_queue(size=6, momentum=0.9, pushed=0, dtype=np.float64):
    """(encoder, queue) whose slow encoder differs from the trained one and which holds `pushed` rows."""
    encoder = made_encoder(dtype=dtype)
    queue = MomentumQueue(encoder.params, size, TINY.width, momentum)
    generator = np.random.default_rng(3)
    queue.slow.flat[...] += generator.standard_normal(queue.slow.flat.size).astype(dtype)
    if pushed:
        queue.keys["keys"][:pushed] = generator.standard_normal((pushed, TINY.width))
        queue.texts["texts"][:pushed] = 100 + np.arange(pushed)[:, None]
        queue.pushed = pushed
    return encoder, queue


def test_first_in_first_out():
    encoder, queue = made_queue(size=6)
    z = np.arange(8.0)[:, None] + np.zeros(TINY.width)
    assert queue.negatives(made_step()) == (None, None)
    queue.advance(encoder.params, made_step((0, 1, 2, 3)), z)
    rows, exclude = queue.negatives(made_step((10, 11, 12, 13)))
    assert rows[:, 0].tolist() == [4, 5, 6, 7] and exclude is None  # the keys, not the queries
    queue.advance(encoder.params, made_step((4, 5, 6, 7)), z + 10)
    assert queue.keys["keys"][:, 0].tolist() == [16, 17, 6, 7, 14, 15]
    assert queue.texts["texts"].tolist() == [[6, 6], [7, 7], [2, 2], [3, 3], [4, 4], [5, 5]]
    assert len(queue.negatives(made_step())[0]) == 6


def test_a_batch_larger_than_the_queue_leaves_its_last_rows():
    encoder, queue = made_queue(size=3)
    for k in range(3):
        step = made_step((4 * k, 4 * k + 1, 4 * k + 2, 4 * k + 3))
        queue.advance(encoder.params, step, np.zeros((8, TINY.width)) + k)
        assert sorted(queue.texts["texts"][:, 0]) == [4 * k + 1, 4 * k + 2, 4 * k + 3]
        assert queue.pushed == 4 * (k + 1) and (queue.keys["keys"] == k).all()


def test_the_slow_encoder_follows():
    encoder, queue = made_queue(momentum=0.75)
    before = queue.slow.flat.copy()
    assert (before != encoder.params.flat).all()
    queue.advance(encoder.params, made_step(), np.ones((8, TINY.width)))
    np.testing.assert_allclose(queue.slow.flat, 0.75 * before + 0.25 * encoder.params.flat, rtol=1e-14)
    fresh = MomentumQueue(encoder.params, 2, TINY.width, 0.999)
    assert (fresh.slow.flat == encoder.params.flat).all() and fresh.slow.flat is not encoder.params.flat


@pytest.mark.parametrize("views", [2, 3])
def test_keys_come_from_the_slow_encoder_and_the_loss_sees_the_queue(views):
    encoder, queue = made_queue(pushed=5)
    step, objective = made_step(views=views), Objective("mean", 0.3, 0.4, queue=queue)
    loss, z, _ = gradients_of(contrastive_step, encoder, step, objective)
    every = list(range(4 * views))
    fast = embed_rows(encoder, encoder.params, step, every, objective, MASKS)[0]
    slow = embed_rows(encoder, queue.slow, step, every, objective, MASKS)[0]
    np.testing.assert_allclose(z, np.concatenate([fast[:4], slow[4:]]), rtol=1e-12)
    options = {"hard_negatives": slow[8:], "log_weight": 0.4} if views == 3 else {}
    expected = info_nce(fast[:4], slow[4:8], 0.3, queue=queue.keys["keys"][:5], **options)[0]
    assert float(loss) == pytest.approx(float(expected), rel=1e-12)
    assert float(loss) > float(info_nce(fast[:4], slow[4:8], 0.3, **options)[0])


def test_the_gradient_of_the_queries_alone():
    """Against differences of the step's loss: the slow encoder does not move with the parameters."""
    encoder, queue = made_queue(pushed=5)
    step, objective = made_step(), Objective("mean", 0.3, queue=queue)
    _, _, gradients = gradients_of(contrastive_step, encoder, step, objective)
    probed = np.random.default_rng(1).choice(encoder.params.flat.size, 60, replace=False)
    with Workers(1) as workers:
        buffers = [encoder.params.zeros_like()]
        numeric = difference_gradient(
            lambda: contrastive_step(encoder, step, objective, MASKS, buffers, workers)[0],
            encoder.params.flat,
            h=1e-4,
            entries=probed,
        )
    assert relative_error(gradients.flat, numeric) <= 5e-9


@pytest.mark.parametrize(("chunk", "threads"), [(1, 1), (3, 2)])
def test_in_chunks(chunk, threads):
    for dtype, limit in ((np.float64, 1e-12), (np.float32, 1e-6)):
        encoder, queue = made_queue(pushed=5, dtype=dtype)
        step, objective = made_step(views=3), Objective("cls", 0.3, 0.2, queue=queue)
        loss, z, whole = gradients_of(contrastive_step, encoder, step, objective)
        chunked_loss, chunked_z, chunked = gradients_of(cached_step, encoder, step, objective, chunk, threads=threads)
        assert float(chunked_loss) == pytest.approx(float(loss), rel=limit)
        np.testing.assert_allclose(chunked_z, z, rtol=0, atol=limit * np.abs(z).max())
        assert relative_error(chunked.flat, whole.flat) <= limit


def test_a_known_answer_in_the_queue_is_no_negative():
    """Texts (anchor, key) in the queue: 0-0 is query 0's own text, 7-1 has query 1's as its key, 2-9 its anchor."""
    _, queue = made_queue(pushed=4)
    queue.texts["texts"][:4] = [[0, 0], [7, 1], [2, 9], [8, 8]]
    exclude = queue.negatives(made_step())[1]
    assert exclude.shape == (4, 4 + 4) and not exclude[:, :4].any()
    np.testing.assert_array_equal(exclude[:, 4:], [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    own = np.eye(4, k=1, dtype=bool)
    step = made_step((10, 11, 12, 13))
    with_own = Step(step.rows, step.labels, 2, own, step.texts)
    np.testing.assert_array_equal(queue.negatives(with_own)[1], np.concatenate([own, np.zeros((4, 4), bool)], axis=1))


@pytest.mark.parametrize("options", [{"queue": 20, "momentum": 0.9}, {"queue": 5, "chunk": 3, "threads": 2}])
def test_a_resumed_run_equals_the_uninterrupted_one(tmp_path, monkeypatch, options):
    text = write_sentences(tmp_path / "text.txt", 120)
    options = RUN | {"steps": 7, "eval_every": 2} | options
    whole = train(text, out=tmp_path / "whole", **options)
    one_step = loop.Training.one_step

    def die(self, workers):
        if self.done == 5:
            raise MemoryError
        return one_step(self, workers)

    monkeypatch.setattr(loop.Training, "one_step", die)
    with pytest.raises(MemoryError):
        train(text, out=tmp_path / "parts", **options)
    monkeypatch.undo()
    assert train(out=tmp_path / "parts", resume=True).finished
    for name in FILES:
        assert (tmp_path / "parts" / name).read_bytes() == (whole.path / name).read_bytes()
    plain = train(text, out=tmp_path / "plain", **options | {"queue": 0})
    assert (plain.path / FILES[0]).read_bytes() != (whole.path / FILES[0]).read_bytes()


def test_pairs_train_with_a_queue(tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("\n".join("\t".join(row) for row in pairs(120)) + "\n", encoding="utf-8")
    result = train(file, out=tmp_path / "run", **RUN, queue=32, momentum=0.9)
    assert result.finished and result.report["positives"] == "pairs"


def test_embed_without_gradient_keeps_the_head():
    encoder, _ = made_queue()
    step, objective = made_step(), Objective("mean", 0.3)
    with_grad, back = embed_rows(encoder, encoder.params, step, [0, 1], objective, MASKS)
    without, none = embed_rows(encoder, encoder.params, step, [0, 1], objective, MASKS, grad=False)
    assert none is None and callable(back)
    np.testing.assert_array_equal(with_grad, without)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"queue": -1}, "queue is -1; expected at least 0"),
        ({"queue": 8, "momentum": 1}, r"momentum is 1; expected a number in \[0, 1\)"),
    ],
)
def test_what_is_refused(tmp_path, options, words):
    with pytest.raises(InputError, match=words):
        train(write_sentences(tmp_path / "text.txt"), out=tmp_path / "run", **RUN | options)
