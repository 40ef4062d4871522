"""Where the time of a training step goes: a table per layer, forward and backward, and the share of matrix products.

`Recorder` stands between the encoder and its layers while it is entered, takes the time of every call and of its
backward (less that of the calls inside it), and notes the shapes of the matrix products. `products_alone` then
multiplies matrices of those very shapes and does nothing else: no step on the same BLAS can be faster than that.
"""

import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np

from nano_simcse import encoder, self_attention
from nano_simcse.masks import Masks
from nano_simcse.training import step as training_step

ROWS = ("embedding", "linear", "attention", "gelu", "layer_norm", "dropout", "masks", "info_nce", "optimizer", "rest")
PLACES = (
    (encoder, "embedding", "embedding"),
    (encoder, "linear", "linear"),
    (encoder, "gelu", "gelu"),
    (encoder, "layer_norm", "layer_norm"),
    (encoder, "drop", "dropout"),
    (self_attention, "linear", "linear"),
    (self_attention, "attention", "attention"),
    (self_attention, "drop", "dropout"),
    (training_step, "info_nce", "info_nce"),
)


class Recorder:
    """Seconds of thread time per layer, {(row, "forward" | "backward"): seconds}, and the shapes of the products.

    products: for every thread a list of (kind, shape): ("linear", (M, Din, Dout)) or ("attention", (n, H, Tq, T, K)).
    """

    def __init__(self):
        self.seconds = defaultdict(float)
        self.products = defaultdict(list)
        self._open = threading.local()  # seconds spent in calls inside the calls now open, innermost last
        self._lock = threading.Lock()
        self._patches = ExitStack()

    def __enter__(self):
        for module, attribute, row in PLACES:
            watched = self._watch(getattr(module, attribute), row)
            self._patches.enter_context(patch.object(module, attribute, watched))
        again = self.timed(encoder.linear_backward, "linear", "backward")
        self._patches.enter_context(patch.object(encoder, "linear_backward", again))
        self._patches.enter_context(patch.object(Masks, "keep", self.timed(Masks.keep, "masks", "forward")))
        return self

    def __exit__(self, *exception):
        self._patches.close()

    def timed(self, function, row, way):
        """`function`, whose time, less that of timed calls inside, is added to (row, way)."""

        def call(*args, **options):
            inside = self._open.__dict__.setdefault("calls", [])
            inside.append(0.0)
            started = time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                passed = time.perf_counter() - started
                own = passed - inside.pop()
                if inside:
                    inside[-1] += passed
                with self._lock:
                    self.seconds[row, way] += own

        return call

    def _watch(self, function, row):
        forward = self.timed(function, row, "forward")

        def call(*args, **options):
            self._note(row, args)
            value, back = forward(*args, **options)
            return value, back if back is None else self.timed(back, row, "backward")

        return call

    def _note(self, row, args):
        if row == "linear":
            shape = (*args[0].shape, args[1].shape[1])
        elif row == "attention":
            shape = (*args[0].shape[:3], args[1].shape[2], args[0].shape[3])
        else:
            return
        with self._lock:
            self.products[threading.get_ident()].append((row, shape))


def where(bench, steps, rounds=3):
    """Text: the share of the matrix products in a step, and milliseconds of thread time of every layer."""
    bench.train(steps[0])  # warm up
    measured = [_one_step(bench, step, number) for number, step in enumerate(steps * rounds)]
    wall, table, products = min(measured, key=lambda step: step[0])
    alone = products_alone(products, bench.workers)
    total = sum(table.values())
    lines = [
        f"{wall:.0f} ms a step; its matrix products alone take {alone:.0f} ms, {alone / wall:.0%} of it",
        f"  {'ms of thread time':18} {'forward':>9} {'backward':>9} {'share':>7}",
    ]
    for row in ROWS:
        forward, backward = table[row, "forward"], table[row, "backward"]
        lines.append(f"  {row:18} {forward:9.1f} {backward:9.1f} {(forward + backward) / total:7.1%}")
    return "\n".join(lines)


def _one_step(bench, step, number):
    """(ms of one training step, {(row, way): ms of thread time}, products of each thread)."""
    recorder = Recorder()
    started = time.perf_counter()
    with recorder:
        _, gradients = bench.gradients_of(step, number)
    inside = time.perf_counter() - started
    bench.update(gradients)
    wall = time.perf_counter() - started
    seconds, threads = recorder.seconds, bench.workers.count
    seconds["rest", "forward"] = threads * inside - sum(seconds.values())  # packing, residuals, waiting, adding up
    seconds["optimizer", "forward"] = threads * (wall - inside)
    table = defaultdict(float, {key: 1000 * value for key, value in seconds.items()})
    return 1000 * wall, table, list(recorder.products.values())


def products_alone(products, workers, repeats=3):
    """Milliseconds of the products of these lists, one list a thread, and nothing else: the smallest of `repeats`."""
    work = [[_matrices(kind, shape) for kind, shape in listed] for listed in products]

    def multiply(listed):
        for pairs in listed:
            for a, b, out in pairs:
                np.matmul(a, b, out=out)

    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        workers.map(multiply, work)
        times.append(1000 * (time.perf_counter() - started))
    return min(times)


def _matrices(kind, shape):
    """The factors and products of one layer's forward and backward, laid out as the layer has them."""
    if kind == "linear":
        rows, wide, high = shape
        x, w, y = (np.ones(size, np.float32) for size in ((rows, wide), (wide, high), (rows, high)))
        return [(x, w, y), (y, w.T, x.copy()), (x.T, y, w.copy())]
    n, heads, queries, keys, width = shape
    q = np.ones((n, queries, heads, width), np.float32).swapaxes(1, 2)
    k, v = (np.ones((n, keys, heads, width), np.float32).swapaxes(1, 2) for _ in range(2))
    s, t = np.ones((n, heads, queries, keys), np.float32), np.ones((n, heads, queries, keys), np.float32)
    kt, vt, st = k.swapaxes(2, 3), v.swapaxes(2, 3), s.swapaxes(2, 3)
    o, dk = np.empty_like(q), np.empty_like(k)
    return [(q, kt, t), (s, v, o), (st, q, dk), (q, vt, t), (s, k, o), (st, q, dk)]
