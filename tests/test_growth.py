"""The cost model of the growth benchmark: its count against the products a step makes, its fits on known costs."""

import numpy as np
import pytest

from benchmarks.cost import Point, exponent, fit_parts, grid
from benchmarks.growth import reason
from benchmarks.workload import Bench, made_up_step
from nano_simcse import encoder, self_attention

POINT = Point(tokens=5, rows=3, width=128, layers=2, positions=8)


def test_operations_are_those_of_the_products_that_a_step_makes(monkeypatch):
    made = {"linear layers": 0, "attention": 0}

    def counted(function, term, operations):
        def call(*args, **options):
            made[term] += 3 * operations(*args)  # backward: two products of the same size
            return function(*args, **options)

        return call

    for module, name, term, operations in (
        (encoder, "linear", "linear layers", lambda x, weight, *_: 2 * len(x) * weight.size),
        (self_attention, "linear", "linear layers", lambda x, weight, *_: 2 * len(x) * weight.size),
        (self_attention, "attention", "attention", lambda q, k, *_: 2 * 2 * q.size * k.shape[2]),
    ):
        monkeypatch.setattr(module, name, counted(getattr(module, name), term, operations))
    bench = Bench(POINT, "cpu", pooling="mean")
    try:
        bench.gradients_of(made_up_step(POINT.rows, 0, np.full(POINT.rows, POINT.tokens)))
    finally:
        bench.workers.__exit__(None, None, None)
    assert made == {name: count for name, count in POINT.operations().items() if name in made}
    assert POINT.parameters == bench.params.flat.size


def test_parameters_as_in_the_formula():
    v, d, layers = 8000, POINT.width, POINT.layers
    assert POINT.parameters == (v + POINT.positions + 4) * d + layers * (12 * d**2 + 13 * d) + d**2 + d


def test_the_predicted_exponents_of_the_grid():
    _, axes = grid(quick=False)
    found = {a.name: exponent(a.sizes, [sum(p.operations().values()) for p in a.points]) for a in axes}
    assert found == pytest.approx({"tokens": 1.02, "rows": 1.00, "width": 1.97, "layers": 1.00}, abs=0.006)


def test_exponent_of_a_power_law():
    sizes = np.array([2, 5, 9, 40])
    assert exponent(sizes, 0.3 * sizes**1.7) == pytest.approx(1.7, abs=1e-12)


def test_parts_of_known_costs_are_found():
    _, axes = grid(quick=False)
    points = list(dict.fromkeys(point for axis in axes for point in axis.points))
    costs = np.array([point.costs() for point in points], float) * [2e-11, 3e-9, 1e-8, 1e-3]
    np.testing.assert_allclose(fit_parts(points, costs.sum(axis=1)), costs, rtol=1e-6)


def test_a_difference_gets_its_reason_and_an_equality_none():
    _, axes = grid(quick=False)
    shares = np.tile([0.25, 0.5, 0.125, 0.125], (len(axes[2].points), 1))
    assert reason(axes[2], 1.95, 1.97, shares) == "as predicted"
    assert reason(axes[2], 1.5, 1.97, shares).startswith("slower than predicted: activations and the word table")
    assert reason(axes[2], 2.5, 1.97, shares).startswith("faster than predicted")
    assert reason(axes[2], 1.5, 1.97, shares).endswith("512: products 25%, activations 50%, parameters 12%, calls 12%")
