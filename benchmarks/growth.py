"""How the time of a training step grows: `python -m benchmarks.growth [--quick] [--out docs/growth.png]`.

T (tokens a row), B (rows, each in two views), D (width, 64 columns a head) and L (layers) vary one at a time around a
middle point; every row is T tokens long and the pooling is the mean, so that every layer computes all tokens.
Predicted: the floating-point operations, counted in cost.py. An exponent is the slope of log time, or of log
operations, over log size: a least-squares line through all points of its range.

The two differ where a step does something that is not arithmetic. To say how much, the measured times of all points
are fitted, with coefficients >= 0, as a sum of four costs: the operations of the matrix products, the numbers in the
activations, the parameters, and calls (layers + 1).
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from nano_simcse.backend import keep_freed_memory
from nano_simcse.checkpoint import write_json
from nano_simcse.files import atomic_write
from nano_simcse.parallel import available_cores

from .cost import PARTS, exponent, fit_parts, grid
from .workload import Bench, made_up_step

NAMES = {"tokens": "T, tokens a row", "rows": "B, rows", "width": "D, width", "layers": "L, layers"}
CLOSE = 0.05  # exponents that differ by less are called equal


def measure(points, rounds, threads):
    """{point: array of seconds of a step, one a round}. Every round goes through all points, so that a machine that is
    slow for a while is slow for all of them; a round before the first is not counted."""
    benches = {}  # points with one architecture share a model
    for point in points:
        if point.encoder_config() not in benches:
            benches[point.encoder_config()] = Bench(point, "cpu", pooling="mean", threads=threads)
    steps = {point: made_up_step(point.rows, 0, np.full(point.rows, point.tokens)) for point in points}
    seconds = {point: [] for point in points}
    for number in range(-1, rounds):
        for point in points if number % 2 else points[::-1]:
            started = time.perf_counter()
            benches[point.encoder_config()].train(steps[point], max(0, number))
            if number >= 0:
                seconds[point].append(time.perf_counter() - started)
        if sys.stderr.isatty():
            print(f"\rround {number + 1} of {rounds}", end="" if number + 1 < rounds else "\n", file=sys.stderr)
    return {point: np.array(times) for point, times in seconds.items()}


def reason(axis, measured, predicted, shares):
    """Why the two exponents of an axis differ, in a sentence; shares: (points, 4) of the step, by fit_parts."""
    if abs(measured - predicted) < CLOSE:
        return "as predicted"
    if measured > predicted:
        why = "faster than predicted: large arrays leave the caches, and passes over them slow down"
    else:
        why = "slower than predicted: " + {
            "tokens": "the cost of parameters and of calls does not depend on T",
            "rows": "the cost of parameters and of calls does not depend on B",
            "width": "activations and the word table grow like D, not D^2, and the number of calls not at all",
            "layers": "the word table, the head and the loss are there once, whatever L is",
        }[axis.name]
    shares = shares[[0, -1]]
    ends = [", ".join(f"{name} {x:.0%}" for name, x in zip(PARTS, end, strict=True)) for end in shares]
    return f"{why}. Fitted shares at {axis.sizes[0]}: {ends[0]}; at {axis.sizes[-1]}: {ends[1]}"


def summary(axis, seconds, parts):
    """Everything about one axis as numbers and text."""
    times = np.array([np.median(seconds[point]) for point in axis.points])
    counted = np.array([sum(point.operations().values()) for point in axis.points])
    modelled = np.array([parts[point] for point in axis.points])
    exponents = {
        "measured": exponent(axis.sizes, times),
        "large_end": exponent(axis.sizes[-2:], times[-2:]),
        "predicted": exponent(axis.sizes, counted),
        "with_parts": exponent(axis.sizes, modelled.sum(axis=1)),
    }
    shares = modelled / modelled.sum(axis=1, keepdims=True)
    return {
        "axis": axis.name, "sizes": axis.sizes.tolist(), "seconds": times.tolist(),
        "low": [float(seconds[p].min()) for p in axis.points], "high": [float(seconds[p].max()) for p in axis.points],
        "operations": counted.tolist(), "parts": modelled.tolist(), **exponents,
        "reason": reason(axis, exponents["measured"], exponents["predicted"], shares),
    }  # fmt: skip


def table(rows, middle, points, seconds, parts):
    """What is printed, as text."""
    lines = [f"{'':16}{'range':>10}{'predicted':>11}{'measured':>10}{'last two':>10}{'fitted sum':>12}"]
    for row in rows:
        span = f"{row['sizes'][0]}-{row['sizes'][-1]}"
        lines.append(f"{NAMES[row['axis']]:16}{span:>10}{row['predicted']:11.2f}{row['measured']:10.2f}"
                     f"{row['large_end']:10.2f}{row['with_parts']:12.2f}")  # fmt: skip
    lines += ["", *(f"{NAMES[row['axis']][0]}: {row['reason']}" for row in rows)]
    counted = middle.operations()
    terms = ", ".join(f"{name} {x / 1e9:.3g}" for name, x in counted.items())
    lines += ["", f"middle point: {1000 * np.median(seconds[middle]):.0f} ms; GFLOP: {terms}"]
    rates = np.max([parts[point] / np.array(point.costs()) for point in points], axis=0)
    speed = f"{1e-9 / rates[0]:.0f} GFLOP/s" if rates[0] else "no time"
    errors = [abs(parts[point].sum() / np.median(seconds[point]) - 1) for point in points]
    lines.append(f"fitted: products {speed}, activations {1e9 * rates[1]:.1f} ns a number and layer, parameters "
                 f"{1e9 * rates[2]:.1f} ns each, calls {1e3 * rates[3]:.2f} ms a layer; off by {np.median(errors):.0%} "
                 f"in the median, {max(errors):.0%} at most")  # fmt: skip
    return "\n".join(lines)


def draw(path, rows, size, middle):
    """Four panels, time over size, both logarithmic: measured, predicted through the middle point, fitted sum."""
    from matplotlib.ticker import LogLocator, NullLocator

    from figures import _style

    figure, panels = _style.panels(columns=2, rows=2, width=4.4, height=3.2)
    for axes, row in zip(panels.flat, rows, strict=True):
        sizes, times = row["sizes"], 1000 * np.array(row["seconds"])
        at = sizes.index(getattr(middle, row["axis"]))
        spread = np.abs(1000 * np.array([row["low"], row["high"]]) - times)
        axes.errorbar(sizes, times, spread, fmt="o", color=_style.BLUE, capsize=2, label="measured")
        predicted = times[at] * np.array(row["operations"]) / row["operations"][at]
        axes.plot(sizes, predicted, "--", color=_style.VERMILION, label="operations alone")
        axes.plot(sizes, 1000 * np.sum(row["parts"], axis=1), ":", color=_style.GREEN, label="fitted sum of costs")
        axes.set(xscale="log", yscale="log", xlabel=NAMES[row["axis"]], ylabel="ms a step")
        axes.set_xticks(sizes, sizes)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_title(f"exponent {row['measured']:.2f}, predicted {row['predicted']:.2f}", weight="normal")
    panels.flat[0].legend()
    figure.suptitle(f"A training step around {size}", x=0.01, ha="left", weight="bold")
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")


def main(argv=None):
    ask = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__.splitlines()[0])
    ask.add_argument("--rounds", type=int, metavar="N", help="times through the grid (default 9; 2 with --quick)")
    ask.add_argument("--threads", type=int, default=available_cores(), metavar="N", help="workers")
    ask.add_argument("--quick", action="store_true", help="small sizes, two rounds, no figure: whether it runs")
    ask.add_argument("--out", metavar="FILE.png", help="figure (default docs/growth.png; none with --quick)")
    ask.add_argument("--json", metavar="FILE", help="also write the numbers here")
    given = ask.parse_args(argv)
    rounds = (2 if given.quick else 9) if given.rounds is None else given.rounds
    if min(rounds, given.threads) < 1:
        ask.error(f"{rounds} rounds with {given.threads} threads; expected at least 1 of each")
    keep_freed_memory()
    middle, axes = grid(given.quick)
    points = list(dict.fromkeys(point for axis in axes for point in axis.points))
    seconds = measure(points, rounds, given.threads)
    fitted = fit_parts(points, np.array([np.median(seconds[point]) for point in points]))
    parts = dict(zip(points, fitted, strict=True))
    rows = [summary(axis, seconds, parts) for axis in axes]
    size = f"T {middle.tokens}, B {middle.rows}, D {middle.width}, L {middle.layers}"
    print(f"{given.threads} threads, medians of {rounds} rounds, around {size}; exponents of the time of a step\n")
    print(table(rows, middle, points, seconds, parts))
    out = given.out or (None if given.quick else "docs/growth.png")
    if out:
        draw(out, rows, size, middle)
        print(f"figure: {out}")
    if given.json:
        write_json(Path(given.json), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
