"""`python -m benchmarks.step`: a training step here and in PyTorch, on the same cores, as a ratio.

Each side runs in a process of its own, because the thread pools of OpenBLAS and PyTorch disturb each other in one.
The two processes take turns, round by round, in an order that reverses each time; a round is a few steps on the same
made-up batches. Printed: the ratio of wall times (ours over theirs, median over the rounds, smallest and largest) and
of peak memory. PyTorch is eager torch.nn, its own attention kernel, fused AdamW, rows padded to the longest of the
batch.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

from nano_simcse.backend import keep_freed_memory
from nano_simcse.parallel import available_cores

from .workload import LONGEST, Bench, Size, made_up_step

SIZES = (
    Size("tiny", 2, 128, 2, 64),
    Size("base", 4, 256, 4, 64),
    Size("minilm", 6, 384, 12, 64, vocabulary=30522),
)
CASES = (("full", "mean"), ("wikipedia", "mean"), ("wikipedia", "cls"))
BATCHES = 4  # different batches that the steps of a round go through
# Rows of each token count 3 ... 32 in 80,732 sentences of Wikipedia, WordPiece vocabulary of 8,000, cut at 32 tokens.
WIKIPEDIA = (15, 41, 125, 189, 281, 346, 410, 479, 556, 724, 850, 999, 1108, 1295, 1337, 1440, 1648, 1667, 1802, 1829,
             1874, 2022, 2013, 2073, 2079, 2030, 2080, 2074, 2076, 45270)  # fmt: skip


def batches(size, lengths):
    """The Steps of a round: all rows 32 tokens long, or lengths drawn as in Wikipedia."""
    made, counts = [], np.array(WIKIPEDIA) / sum(WIKIPEDIA)
    for seed in range(BATCHES):
        drawn = np.random.default_rng(seed).choice(np.arange(3, 33), size.batch, p=counts)
        rows = np.full(size.batch, LONGEST) if lengths == "full" else drawn
        made.append(made_up_step(size.batch, seed, rows))
    return made


def worker(side, size, lengths, pooling, threads):
    """Answer each line of standard input, a number of steps, with the seconds they took and the peak memory."""
    if side == "ours":
        keep_freed_memory()
        bench = Bench(size, "cpu", pooling=pooling, threads=threads)
    else:
        import torch

        from .torch_step import TorchBench

        torch.set_num_threads(threads)
        bench = TorchBench(size, "cpu", pooling=pooling)
    steps = batches(size, lengths)
    for line in sys.stdin:
        started = time.perf_counter()
        for i in range(int(line)):
            bench.train(steps[i % BATCHES])
        seconds = time.perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps([seconds, peak]), flush=True)


class Child:
    """One side in a process of its own."""

    def __init__(self, side, size, lengths, pooling, threads):
        environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": str(threads)}
        command = [sys.executable, "-m", "benchmarks.step", "--worker", side, size.name, lengths, pooling]
        self.process = subprocess.Popen(
            [*command, "--threads", str(threads)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    def steps(self, count):
        """(seconds, peak memory in kB) of this many steps."""
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(size, lengths, pooling, threads, rounds, count):
    """{"ratio", "low", "high", "ours_ms", "torch_ms", "memory_ratio"} of one case."""
    sides = {name: Child(name, size, lengths, pooling, threads) for name in ("ours", "torch")}
    ratios, times, peak = [], {"ours": [], "torch": []}, {}
    try:
        for child in sides.values():
            child.steps(BATCHES)  # warm up
        for k in range(rounds):
            for name in sorted(sides, reverse=k % 2 == 1):
                seconds, peak[name] = sides[name].steps(count)
                times[name].append(1000 * seconds / count)
            ratios.append(times["ours"][-1] / times["torch"][-1])
    finally:
        for child in sides.values():
            child.close()
    return {
        "case": f"{lengths} lengths, {pooling}", "size": size.name,
        "ratio": statistics.median(ratios), "low": min(ratios), "high": max(ratios),
        "ours_ms": statistics.median(times["ours"]), "torch_ms": statistics.median(times["torch"]),
        "memory_ratio": peak["ours"] / peak["torch"],
    }  # fmt: skip


def main():
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--rounds", type=int, default=7)
    ask.add_argument("--steps", type=int, default=8, help="steps a round")
    ask.add_argument("--threads", type=int, default=available_cores())
    ask.add_argument("--size", choices=[size.name for size in SIZES], action="append")
    ask.add_argument("--json", metavar="FILE", help="also write the results here")
    ask.add_argument("--worker", nargs=4, metavar=("SIDE", "SIZE", "LENGTHS", "POOLING"), help=argparse.SUPPRESS)
    given = ask.parse_args()
    sizes = {size.name: size for size in SIZES}
    if given.worker:
        side, size, lengths, pooling = given.worker
        return worker(side, sizes[size], lengths, pooling, given.threads)
    print(f"{given.threads} threads, {given.rounds} rounds of {given.steps} steps, ours over torch\n")
    print(f"{'case':26} {'size':8} {'ratio':>6} {'min':>6} {'max':>6} {'ours ms':>9} {'torch ms':>9} {'memory':>7}")
    results = []
    for lengths, pooling in CASES:
        for name in given.size or sizes:
            r = compare(sizes[name], lengths, pooling, given.threads, given.rounds, given.steps)
            results.append(r)
            print(f"{r['case']:26} {r['size']:8} {r['ratio']:6.2f} {r['low']:6.2f} {r['high']:6.2f} "
                  f"{r['ours_ms']:9.1f} {r['torch_ms']:9.1f} {r['memory_ratio']:7.2f}", flush=True)  # fmt: skip
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    return None


if __name__ == "__main__":
    main()
