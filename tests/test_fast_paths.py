"""Every layer as the package computes it, fast, beside the same layer written plainly: forward, backward, both
precisions. The plain forms are the formulas of the layers' own derivations, on whole arrays, with nothing shared."""

import threading

import numpy as np
import pytest
from cases import MASKS, TINY, random_parameters, random_rows, view_labels
from scipy.special import erf

from nano_simcse import encoder
from nano_simcse.backend import row_blocks, scatter_add
from nano_simcse.data.batches import pack
from nano_simcse.layers import attention, dropout, embedding, gelu, layer_norm, linear, linear_backward
from nano_simcse.layers.gelu import FORMS
from nano_simcse.masks import Masks
from nano_simcse.optim import AdamW, clip_factor, global_norm
from nano_simcse.parallel import Workers
from nano_simcse.parameters import Parameters, accumulate
from nano_simcse.training.samplers import Step
from nano_simcse.training.step import Objective, contrastive_step, gradient_buffers

ROWS, WIDTH = 1400, 192  # more than one cache block
TOLERANCE = {np.float64: 1e-12, np.float32: 2e-6}
BOTH = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def drawn(shape, seed, dtype):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def assert_same(fast, plain, dtype):
    """Equal to the tolerance times the largest number, and of the precision that went in."""
    for x, y in zip(fast, plain, strict=True):
        assert x.dtype == dtype
        assert np.abs(x - y).max() <= TOLERANCE[dtype] * max(1.0, np.abs(y).max())


def wide(*arrays):
    """The plain side computes in float64."""
    return [x.astype(np.float64) for x in arrays]


def test_the_cases_are_larger_than_a_block():
    assert len(row_blocks(np.empty((ROWS, WIDTH)))) > 1


@BOTH
def test_layer_norm(dtype):
    x, gamma, beta, dy = (drawn(s, i, dtype) for i, s in enumerate([(ROWS, WIDTH), WIDTH, WIDTH, (ROWS, WIDTH)]))
    y, back = layer_norm(x, gamma, beta, 1e-5)
    fast = (y, *back(dy))
    x, gamma, beta, dy = wide(x, gamma, beta, dy)
    r = 1 / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    xhat = (x - x.mean(axis=1, keepdims=True)) * r
    g = dy * gamma
    dx = r * (g - g.mean(axis=1, keepdims=True) - xhat * (g * xhat).mean(axis=1, keepdims=True))
    assert_same(fast, (gamma * xhat + beta, dx, (dy * xhat).sum(axis=0), dy.sum(axis=0)), dtype)


@BOTH
def test_gelu(dtype):
    x, dy = 3 * drawn((ROWS, WIDTH), 0, dtype), drawn((ROWS, WIDTH), 1, dtype)
    y, back = gelu(x)
    fast = y, back(dy)
    x, dy = wide(x, dy)
    phi = (1 + erf(x / np.sqrt(2))) / 2
    assert_same(fast, (x * phi, dy * (phi + x * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))), dtype)


@BOTH
def test_dropout(dtype):
    x, dy = drawn((ROWS, WIDTH), 0, dtype), drawn((ROWS, WIDTH), 1, dtype)
    keep = np.random.default_rng(2).random(x.shape) > 0.1
    y, back = dropout(x, keep, 1 / 0.9)
    assert_same((y, back(dy)), (np.where(keep, x / 0.9, 0), np.where(keep, dy / 0.9, 0)), dtype)


@BOTH
def test_attention(dtype):
    """The backward joins dropout and softmax; the plain one goes through every pass."""
    n, heads, tokens, width = 5, 3, 9, 16
    q, k, v, do = (drawn((n, heads, tokens, width), i, dtype) for i in range(4))
    keep = np.random.default_rng(4).random((n, heads, tokens, tokens)) > 0.2
    real = np.arange(tokens) < np.array([[9], [4], [1], [9], [7]])
    context, back = attention(q, k, v, real, keep, 1 / 0.8)
    fast = (context, *back(do))
    q, k, v, do = wide(q, k, v, do)
    s = np.where(real[:, None, None, :], q @ k.swapaxes(2, 3) / np.sqrt(width), -np.inf)
    p = np.exp(s - s.max(axis=3, keepdims=True))
    p /= p.sum(axis=3, keepdims=True)
    a = p * keep / 0.8
    dp = (do @ v.swapaxes(2, 3)) * keep / 0.8
    ds = np.empty_like(p)
    for place in np.ndindex(n, heads, tokens):
        ds[place] = (np.diag(p[place]) - np.outer(p[place], p[place])) @ dp[place]
    ds /= np.sqrt(width)
    assert_same(fast, (a @ v, ds @ k, ds.swapaxes(2, 3) @ q, a.swapaxes(2, 3) @ do), dtype)


@BOTH
def test_embedding(dtype):
    """Also the sums: in the order of the rows, so that a later run has the same bits."""
    table, dy = drawn((40, WIDTH), 0, dtype), drawn((ROWS, WIDTH), 1, dtype)
    ids = np.minimum(np.random.default_rng(2).zipf(1.5, ROWS), 39).astype(np.int32)
    y, back = embedding(table, ids)
    plain = np.zeros((40, WIDTH))
    for m, row in zip(ids, dy, strict=True):
        plain[m] += row
    assert_same((y, back(dy)), (table[ids], plain), dtype)
    in_order = np.zeros((40, WIDTH), dtype)
    np.add.at(in_order, ids, dy)
    scatter_add(once := np.zeros_like(in_order), ids, dy)
    assert once.tobytes() == in_order.tobytes()


@BOTH
@pytest.mark.parametrize("threads", [None, 1, 2, 3])
def test_clipping_and_adamw_on_a_flat_buffer(dtype, threads):
    size = 150_001
    parameters = Parameters({"x": (size,)}, drawn(size, 0, dtype))
    theta = parameters.flat.astype(np.float64)
    optimizer, m, v = AdamW(parameters, weight_decay=0.1), 0.0, 0.0
    with Workers(threads or 1) as workers:
        for t in (1, 2, 3):
            g = drawn(size, t, dtype)
            gradients, shared = Parameters({"x": (size,)}, g.copy()), workers if threads else None
            norm = global_norm(gradients)
            optimizer.step(gradients, 1e-2, shared, clip_factor(norm, 1.0))
            assert (gradients.flat == g).all()
            g = g.astype(np.float64)
            assert abs(norm / np.sqrt((g**2).sum()) - 1) < TOLERANCE[dtype]
            g /= max(1.0, np.sqrt((g**2).sum()))
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
            theta *= 1 - 1e-2 * 0.1
            theta -= 1e-2 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    assert_same([parameters.flat], [theta], dtype)


def test_the_update_has_the_same_bits_for_every_number_of_threads():
    results = []
    for threads in (1, 2, 3):
        parameters = Parameters({"x": (100_003,)}, drawn(100_003, 0, np.float32))
        optimizer = AdamW(parameters)
        with Workers(threads) as workers:
            for t in range(3):
                gradients = Parameters({"x": (100_003,)}, drawn(100_003, t, np.float32))
                optimizer.step(gradients, 1e-2, workers, clip_factor(global_norm(gradients), 1.0))
        results.append(parameters.flat.tobytes())
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("masks", [MASKS, Masks(0, 0, 0.0)])
def test_a_step_in_several_threads_equals_one(pooling, masks):
    """Cut between rows, not between views: the masks follow the rows, and the gradients add up to the same."""

    class Model:
        params, config, device = random_parameters(TINY), TINY, "cpu"

    rows = random_rows((5, 2, 7, 5, 3, 8), TINY.vocab_size)
    step = Step(rows * 2, view_labels(6, 2), views=2, exclude=None)
    results = []
    for threads in (1, 2, 3, 4):
        buffers = gradient_buffers(Model.params, threads)
        assert len(buffers) == (1, 1, 2, 2)[threads - 1]
        with Workers(threads) as workers:
            for _ in range(5):  # two workers add to one buffer, whichever comes first: to the same bits
                buffers[0].flat.fill(7)  # overwritten, not added to
                loss, _ = contrastive_step(Model, step, Objective(pooling, 0.5), masks, buffers, workers)
                results.append((threads, float(loss), buffers[0].flat.copy()))
    for threads, loss, gradient in results[1:]:
        assert abs(loss - results[0][1]) < 1e-13
        assert np.abs(gradient - results[0][2]).max() < 1e-13 * max(1, np.abs(results[0][2]).max())
        assert gradient.tobytes() == next(first for count, _, first in results if count == threads).tobytes()


@pytest.mark.parametrize("threads", [2, 3, 4, 5])
def test_the_bits_do_not_depend_on_which_worker_adds_first(threads):
    """Serially, first worker first and last worker first: what threads may do, and two extremes of it."""

    class Model:
        params, config, device = random_parameters(TINY), TINY, "cpu"

    class InOrder(Workers):
        order = 1

        def map(self, function, parts):
            results = [function(part) for part in list(parts)[:: self.order]]
            return results[:: self.order]

    step = Step(random_rows((5, 2, 7, 5, 3, 8), TINY.vocab_size) * 2, view_labels(6, 2), views=2, exclude=None)
    found = set()
    for order in (1, -1):
        buffers = gradient_buffers(Model.params, threads)
        with InOrder(threads) as workers:
            workers.order = order
            contrastive_step(Model, step, Objective("mean", 0.5), MASKS, buffers, workers)
        found.add(buffers[0].flat.tobytes())
    assert len(found) == 1


def test_gradients_are_added_one_thread_at_a_time():
    gradients = Parameters({"a.weight": (2,)}, dtype=np.float64)
    adding = threading.Thread(target=accumulate, args=(gradients, "a", ("weight",), np.ones(2)))
    with gradients.lock:
        adding.start()
        adding.join(0.2)
        assert adding.is_alive() and not gradients.flat.any()
    adding.join()
    assert gradients.flat.tolist() == [1.0, 1.0]


def test_backwards_that_overwrite_what_they_are_given():
    generator = np.random.default_rng(5)
    x, dy, weight = (generator.standard_normal(shape) for shape in ((7, 3), (7, 4), (3, 4)))
    _, backward = linear(x, weight, np.zeros(4))
    expected, memory = backward(dy), x.copy()
    dx, dweight, dbias = linear_backward(memory, weight, dy, out=memory)
    assert dx is memory
    for value, wanted in zip((dx, dweight, dbias), expected, strict=True):
        assert value.tobytes() == wanted.tobytes()
    _, backward = gelu(dy)
    expected = backward(dy + 1)
    memory = dy + 1
    assert backward(memory, out=memory) is memory and memory.tobytes() == expected.tobytes()


@BOTH
@pytest.mark.parametrize("form", FORMS)
def test_a_gelu_may_write_over_its_input(dtype, form):
    x, dy = drawn((ROWS, WIDTH), 0, dtype), drawn((ROWS, WIDTH), 1, dtype)
    y, backward = gelu(x, form)
    memory = x.copy()
    over, over_backward = gelu(memory, form, out=memory)
    assert over is memory and over.tobytes() == y.tobytes()
    assert over_backward(dy).tobytes() == backward(dy).tobytes()
    memory = x.copy()
    assert gelu(memory, form, grad=False, out=memory)[0].tobytes() == y.tobytes()


@pytest.mark.parametrize("first_only", [False, True])
def test_a_gelu_made_again_gives_the_same_bits(first_only, monkeypatch):
    params, batch = random_parameters(TINY), pack(random_rows((5, 2, 7), TINY.vocab_size), view_labels(3, 1))
    results = []
    for kept in (encoder.KEPT, 0):
        monkeypatch.setattr(encoder, "KEPT", kept)
        hidden, backward = encoder.encoder_forward(params, TINY, batch, MASKS, first_only=first_only)
        results.append([backward(hidden[-1]).flat.tobytes() for _ in range(2)])  # a backward can be called again
    assert len(set(results[0] + results[1])) == 1
