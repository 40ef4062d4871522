"""What the gradient cache costs and saves: `python -m benchmarks.chunk [--batch 4096] [--chunk 64]`.

Peak resident memory and seconds of training steps on made-up sentences: a batch of `chunk`, the large batch in chunks,
and, where it is asked for, the large batch at once. Every measurement is a process of its own, because a process does
not give its peak back.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

from nano_simcse.backend import keep_freed_memory
from nano_simcse.masks import Masks
from nano_simcse.parallel import Workers, available_cores
from nano_simcse.training.gradient_cache import cached_step
from nano_simcse.training.step import contrastive_step, gradient_buffers

from .workload import SIZES, Bench, made_up_step

STEPS = {False: 10, True: 1}  # of a small and of a large batch


def child(size, batch, chunk, threads):
    """Peak memory in MB and seconds a step of one way of training, as a line of JSON."""
    keep_freed_memory()
    bench = Bench(size, "cpu")
    gradients = gradient_buffers(bench.params, threads, in_chunks=bool(chunk))
    step = made_up_step(batch)
    with Workers(threads) as workers:
        arguments = (bench.encoder, step, bench.objective, Masks(0, 0, 0.1), gradients, workers)
        steps, started, cpu = STEPS[batch > 256], time.perf_counter(), time.process_time()
        for _ in range(steps):
            cached_step(*arguments, chunk) if chunk else contrastive_step(*arguments)
            bench.optimizer.step(gradients[0], 5e-4)
        seconds, cpu = (time.perf_counter() - started) / steps, (time.process_time() - cpu) / steps
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)
    print(json.dumps({"peak": peak, "seconds": seconds, "cpu": cpu}))


def measure(size, batch, chunk, threads):
    """Run `child` in a process of its own."""
    options = {"--size": size, "--batch": batch, "--chunk": chunk, "--threads": threads}
    command = [sys.executable, "-m", "benchmarks.chunk", "--child", *(str(x) for pair in options.items() for x in pair)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chunk", description=__doc__.split("\n")[0])
    names = [size.name for size in SIZES]
    parser.add_argument("--size", choices=names, default=names[0], help=f"model (default {names[0]})")
    parser.add_argument("--batch", type=int, default=4096, metavar="N", help="sentences of the large batch")
    parser.add_argument("--chunk", type=int, default=64, metavar="N", help="sentences held at a time")
    parser.add_argument("--threads", type=int, default=available_cores(), metavar="N", help="workers")
    parser.add_argument("--at-once", action="store_true", help="also the large batch without chunks")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.child:
        size = SIZES[names.index(given.size)]
        return child(size, given.batch, given.chunk, given.threads)
    cases = [(given.chunk, 0), (given.batch, given.chunk)] + [(given.batch, 0)] * given.at_once
    found = [measure(given.size, batch, chunk, given.threads) for batch, chunk in cases]
    print(f"{given.size} model, {given.threads} worker(s)\n{'batch':>6}{'chunk':>7}{'peak MB':>9}{'of first':>10}"
          f"{'s a step':>10}{'cpu ms a sentence':>19}")  # fmt: skip
    for (batch, chunk), row in zip(cases, found, strict=True):
        print(f"{batch:>6}{chunk or '-':>7}{row['peak']:>9.0f}{row['peak'] / found[0]['peak']:>10.2f}"
              f"{row['seconds']:>10.2f}{1000 * row['cpu'] / batch:>19.2f}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
