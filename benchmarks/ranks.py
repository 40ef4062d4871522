"""What more ranks buy: `python -m benchmarks.ranks [--size small] [--batch 64] [--out docs/ranks.png]`.

Weak scaling: every rank has `batch` sentences of its own and one thread, so R ranks take steps of R * batch sentences,
each with R * batch - 1 negatives. Perfect would be the time of one rank.

Measured here: the step of one rank; the step of two ranks (mpiexec -n 2, where mpi4py is installed); the loss of one
rank's queries against the candidates of R ranks. Simulated, and marked so: the exchanges of R ranks over a network of a
given bandwidth and latency, from the numbers of bytes a rank sends in a step,

    (R - 1) V B D * 4           embeddings, gathered          (B sentences a rank in V views)
    (R - 1) V B D * 4           their gradients, returned to the owners
    2 (R - 1) / R * P * 4       the gradient of P parameters, added up

and ceil(log2 R) latencies for each of the six messages. Nothing of it overlaps with computing, as nothing does here.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from nano_simcse.backend import keep_freed_memory
from nano_simcse.files import atomic_write
from nano_simcse.losses.info_nce_rows import info_nce_rows
from nano_simcse.masks import Masks
from nano_simcse.parallel import Workers, available_cores
from nano_simcse.ranks import current_ranks
from nano_simcse.training.step import contrastive_step

from .workload import SIZES, Bench, made_up_step

RANKS = (1, 2, 4, 8, 16, 32, 64)
VIEWS, BYTES, MESSAGES = 2, 4, 6
NETWORKS = {"10 Gbit/s, 50 us": (1.25e9, 50e-6), "100 Gbit/s, 5 us": (12.5e9, 5e-6)}  # bytes/s, seconds
WARM_UP = 3


def step_seconds(size, batch, count):
    """Median seconds of `count` steps of `batch` sentences a rank, on the ranks this process is one of; one thread."""
    keep_freed_memory()
    ranks, bench = current_ranks(), Bench(size, "cpu")
    step, times = made_up_step(batch * ranks.size), []
    with Workers(1, ranks) as workers:
        for number in range(WARM_UP + count):
            ranks.agree(False)  # begin together
            started = time.perf_counter()
            contrastive_step(bench.encoder, step, bench.objective, Masks(0, number, 0.1), bench.gradients, workers)
            ranks.all_reduce(bench.gradients[0].flat)
            bench.update(bench.gradients[0])
            times.append(time.perf_counter() - started)
    return float(np.median(times[WARM_UP:]))


def loss_seconds(size, batch, ranks):
    """Seconds of one rank's part of the loss, forward and backward, with the candidates of `ranks` ranks; one core."""
    generator = np.random.default_rng(0)
    queries, keys = generator.standard_normal((2, batch * ranks, size.width), dtype=np.float32)
    times = []
    with Workers(1):
        for _ in range(3):
            started = time.perf_counter()
            info_nce_rows(queries, keys, 0.05, slice(0, batch))[1]()
            times.append(time.perf_counter() - started)
    return min(times)


def bytes_sent(size, batch, parameters, ranks):
    """Bytes that a rank sends in a step: (embeddings and their gradients, parameter gradients)."""
    rows = 2 * (ranks - 1) * VIEWS * batch * size.width * BYTES
    return rows, 2 * (ranks - 1) / ranks * parameters * BYTES


def measure_two(arguments):
    """Step seconds of two real ranks, or None where they cannot be started."""
    beside = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None or available_cores() < 2:
        return None
    command = [mpiexec, "-n", "2", sys.executable, "-m", "mpi4py", "-m", "benchmarks.ranks", "--measure"]
    command += ["--size", arguments.size, "--batch", str(arguments.batch), "--steps", str(arguments.steps)]
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(command, env={**os.environ, **allowed}, capture_output=True, text=True, timeout=600)
    if done.returncode:
        print(f"two ranks could not be measured: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def simulated(size, batch, parameters, one, losses, network):
    """{ranks: simulated seconds of a step} over a network (bytes/s, latency)."""
    bandwidth, latency = network
    seconds = {}
    for ranks in RANKS:
        sent = sum(bytes_sent(size, batch, parameters, ranks))
        waiting = MESSAGES * math.ceil(math.log2(ranks)) * latency
        seconds[ranks] = one + losses[ranks] - losses[1] + sent / bandwidth + waiting
    return seconds


def draw(path, arguments, curves, two, one):
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    for (name, seconds), (colour, style) in zip(curves.items(), (("#0072B2", "--"), ("#009E73", ":")), strict=True):
        values = [100 * one / seconds[ranks] for ranks in RANKS]
        axes.plot(RANKS, values, style, color=colour, marker="o", markersize=4, label=f"simulated: {name}")
    if two:
        axes.plot([2], [100 * one / two], "s", color="#D55E00", markersize=8, label="measured: 2 ranks, 1 machine")
    axes.axhline(100, color="#7F7F7F", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_xticks(RANKS, RANKS)
    axes.set(title=f"Weak scaling, {arguments.batch} sentences a rank, model '{arguments.size}'", xlabel="ranks",
             ylabel="speed of a rank, % of one alone", ylim=(0, 110))  # fmt: skip
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    FigureCanvasAgg(figure)
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="small", choices=[size.name for size in SIZES])
    parser.add_argument("--batch", type=int, default=64, metavar="B", help="sentences a rank (default 64)")
    parser.add_argument("--steps", type=int, default=20, metavar="N", help="measured steps (default 20)")
    parser.add_argument("--out", default="docs/ranks.png", metavar="FILE.png")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    size = next(size for size in SIZES if size.name == arguments.size)
    one = step_seconds(size, arguments.batch, arguments.steps)
    if arguments.measure:
        if current_ranks().rank == 0:
            print(json.dumps(one))
        return
    two = measure_two(arguments)
    losses = {ranks: loss_seconds(size, arguments.batch, ranks) for ranks in RANKS}
    parameters = Bench(size, "cpu").params.flat.size
    curves = {
        name: simulated(size, arguments.batch, parameters, one, losses, network) for name, network in NETWORKS.items()
    }
    print(f"model {size.name}: {parameters:,} parameters, {arguments.batch} sentences and one thread a rank")
    print(f"measured: one rank {1e3 * one:.1f} ms a step", end="")
    print(f", two {1e3 * two:.1f} ms: {100 * one / two:.0f} % of perfect" if two else "; two ranks not measured")
    print(f"\n{'ranks':>5} {'batch':>6} {'loss ms':>8} {'MB z, dz':>9} {'MB grad':>8}", end="")
    print("".join(f"  simulated {name}" for name in curves))
    for ranks in RANKS:
        rows, gradients = (n / 1e6 for n in bytes_sent(size, arguments.batch, parameters, ranks))
        batch, loss = ranks * arguments.batch, 1e3 * losses[ranks]
        print(f"{ranks:>5} {batch:>6} {loss:>8.2f} {rows:>9.2f} {gradients:>8.2f}", end="")
        for name, seconds in curves.items():
            cell = f"{1e3 * seconds[ranks]:.1f} ms, {100 * one / seconds[ranks]:.0f} %"
            print(f"  {cell:>{len(name) + 10}}", end="")
        print()
    draw(arguments.out, arguments, curves, two, one)
    print(f"picture: {arguments.out}")


if __name__ == "__main__":
    main()
