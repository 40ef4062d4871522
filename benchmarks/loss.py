"""The loss alone, forward and backward, against torch: `python -m benchmarks.loss` (needs the extra `oracle`).

    blocks       info_nce in blocks of rows, what is chosen at this size
    matrix       info_nce with the whole N x N matrix
    symmetric    both directions, in blocks
    torch        cross_entropy(normalize(q) @ normalize(k).T / tau)

Every measurement is a process of its own, because the threads of two BLAS libraries in one process disturb each other;
the processes alternate, in reverse order every other round. Ratios are taken within a round. Beside the wall time
stands the time on the processors, which a busy machine disturbs less: with two threads that wait for each other by
spinning it counts the waiting, so with --threads 1 it is the cleanest number of all.
Then the memory of the loss at N = 32,768 beyond its inputs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

FORMS = ("blocks", "matrix", "symmetric", "torch")
TEMPERATURE, WIDTH = 0.05, 256
CALLS = 3  # per process, after one to warm up; the fastest counts


def inputs(n):
    """Queries and keys (N, D), float32: keys are noisy copies, as positives are."""
    import numpy as np

    generator = np.random.default_rng(0)
    q = generator.standard_normal((n, WIDTH), dtype=np.float32)
    return q, q + generator.standard_normal((n, WIDTH), dtype=np.float32)


def numpy_call(form, q, k):
    """A function of no argument that computes the loss and both gradients."""
    from nano_simcse.backend import keep_freed_memory
    from nano_simcse.losses import info_nce

    keep_freed_memory()
    options = {"matrix": {"blocks": 0}, "symmetric": {"symmetric": True}}.get(form, {})

    def call():
        loss, backward = info_nce(q, k, TEMPERATURE, **options)
        return float(loss), *backward()

    return call


def torch_call(q, k, threads):
    import torch
    from torch.nn.functional import cross_entropy, normalize

    torch.set_num_threads(threads)
    q, k = (torch.from_numpy(x).requires_grad_() for x in (q, k))
    target = torch.arange(len(q))

    def call():
        q.grad = k.grad = None
        loss = cross_entropy(normalize(q) @ normalize(k).T / TEMPERATURE, target)
        loss.backward()
        return float(loss), q.grad, k.grad

    return call


def peak_mb():
    """Peak resident memory of this process in MB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)


def child(form, n, threads):
    """What one process measures, as a line of JSON: {"wall", "cpu"} seconds of a call, {"loss"}, {"peak"} MB added."""
    q, k = inputs(n)
    call = torch_call(q, k, threads) if form == "torch" else numpy_call(form, q, k)
    before, walls, cpus = peak_mb(), [], []
    calls = CALLS if n <= 8192 else 0
    for _ in range(1 + calls):
        wall, cpu = time.perf_counter(), time.process_time()
        loss = call()[0]
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    print(json.dumps({"wall": min(walls[-3:]), "cpu": min(cpus[-3:]), "loss": loss, "peak": peak_mb() - before}))


def measure(form, n, threads):
    """Run `child` in a process of its own."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, str(threads))
    command = [sys.executable, "-m", "benchmarks.loss", "--child", form, "--size", str(n), "--threads", str(threads)]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def compare(n, threads, rounds):
    """Form -> list of measurements, one a round, alternating."""
    found = {form: [] for form in FORMS}
    for i in range(rounds):
        for form in FORMS if i % 2 == 0 else FORMS[::-1]:
            found[form].append(measure(form, n, threads))
    return found


def table(found):
    """Aligned text: medians, and the ratio to torch of each round as median (min to max)."""
    lines = [f"{'':<11}{'wall ms':>9}{'cpu ms':>9}{'added MB':>10}   wall / torch          cpu / torch"]
    for form in FORMS:
        rows, ratios = found[form], []
        for clock in ("wall", "cpu"):
            values = [row[clock] / other[clock] for row, other in zip(rows, found["torch"], strict=True)]
            ratios.append(f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})")
        wall, cpu = (1000 * statistics.median(row[clock] for row in rows) for clock in ("wall", "cpu"))
        peak = statistics.median(row["peak"] for row in rows)
        lines.append(f"{form:<11}{wall:>9.0f}{cpu:>9.0f}{peak:>10.0f}   {ratios[0]:<22}{ratios[1]}")
    return "\n".join(lines)


def noise(found):
    """Slowest over fastest torch call, wall and processor time: 1.0 on a machine that does nothing else."""
    swing = {c: max(r[c] for r in found["torch"]) / min(r[c] for r in found["torch"]) for c in ("wall", "cpu")}
    load = f", load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores" if hasattr(os, "getloadavg") else ""
    return f"noise: torch itself varies by {swing['wall']:.2f} (wall) and {swing['cpu']:.2f} (cpu){load}"


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loss", description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=4096, metavar="N", help="rows (default 4096)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), metavar="N", help="of BLAS and of torch")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="processes of each form (default 7)")
    parser.add_argument("--large", type=int, default=32768, metavar="N", help="rows to measure memory at; 0 for none")
    parser.add_argument("--child", choices=FORMS, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    n, threads = arguments.size, arguments.threads
    if arguments.child:
        return child(arguments.child, n, threads)
    print(f"InfoNCE of {n} x {n}, D = {WIDTH}, forward and backward, float32, {threads} thread(s), "
          f"medians of {arguments.rounds} processes")  # fmt: skip
    found = compare(n, threads, arguments.rounds)
    print(table(found))
    print(noise(found))
    if arguments.large:
        for form in ("blocks", "symmetric"):
            large = measure(form, arguments.large, threads)
            print(f"N = {arguments.large}, {form}: {large['peak']:.0f} MB beyond the inputs, {large['wall']:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
