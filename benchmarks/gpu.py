"""Everything about one GPU in one run, under eight minutes: `python -m benchmarks.gpu [--out FILE]`.

    probe       which card, which versions
    equality    bits of the masks; loss and every gradient against float64 NumPy, per tensor
    steps       50 training steps of three sizes: time, sentences a second, memory, copies; PyTorch beside it
    run         two minutes of SimCSE on real text, with its score before and after, and the speed of encoding

Results go to one JSON file and one Markdown table. `--dry-run` goes through the motions on the stand-in for CuPy that
the tests use, at a small size, and reports no time.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from nano_simcse import train
from nano_simcse.backend import resolve_device
from nano_simcse.checkpoint import write_json
from nano_simcse.errors import InputError

from .equality import GRADIENT_LIMIT, mask_mismatches, step_errors
from .workload import SIZES, Bench, Size, made_up_step

STEPS, WARM_UP = 50, 5
DIFFERENT_BATCHES = 8
PATIENCE = 40  # seconds a size may take before its steps are cut short
RUN_SECONDS, RUN_STEPS = 120, (100, 4000)
ENCODED = 4096  # sentences
DRY = (Size("dry", 1, 16, 2, 4),)


def probe(cupy):
    """Card, memory and versions."""
    found = {"cupy": cupy.__version__, "numpy": np.__version__, "driver": cupy.cuda.runtime.driverGetVersion()}
    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return {
        "card": properties["name"].decode(),
        "memory_gib": round(properties["totalGlobalMem"] / 2**30, 1),
        "runtime": cupy.cuda.runtime.runtimeGetVersion(),
        **found,
    }


def equality(device, sizes):
    """Differing mask bits, and the largest error of loss and gradients of each size, with the tensor's name."""
    result = {"mask_bits_that_differ": sum(mask_mismatches(device).values()), "limit": GRADIENT_LIMIT, "steps": {}}
    for size in sizes:
        errors = step_errors(device, size)
        worst = max(errors, key=lambda name: errors[name][0])
        result["steps"][size.name] = {"errors": errors, "worst": worst, "worst_error": errors[worst][0]}
    worst = max(step["worst_error"] for step in result["steps"].values())
    result["passed"] = result["mask_bits_that_differ"] == 0 and worst < GRADIENT_LIMIT
    return result


def timed(train_step, synchronize):
    """(seconds a step, steps taken): mean over STEPS steps after a warm-up, fewer where patience runs out."""
    for i in range(WARM_UP):
        train_step(i)
    synchronize()
    started = time.perf_counter()
    for i in range(STEPS):
        train_step(i)
        if i % 10 == 9 and time.perf_counter() - started > PATIENCE:
            break
    synchronize()
    return (time.perf_counter() - started) / (i + 1), i + 1


def step_figures(cupy, device, size, batches):
    """Time, memory and copies of training steps of one size."""
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()  # what the size before left, so that the pool grows to what this one needs
    bench = Bench(size, device)

    def train_step(i):
        bench.train(batches[i % len(batches)], number=i)

    seconds, steps = timed(train_step, cupy.cuda.Device().synchronize)
    return {
        "ms": 1e3 * seconds,
        "sentences_per_s": size.batch / seconds,
        "steps": steps,
        "peak_gib": pool.total_bytes() / 2**30,
        "uploads": uploads_of(cupy, bench, batches[0]),
    }


def uploads_of(cupy, bench, step):
    """Copies from host to device in one training step, counted at the one place that makes them."""
    asarray, count = cupy.asarray, 0

    def counting(*arguments, **keywords):
        nonlocal count
        count += 1
        return asarray(*arguments, **keywords)

    cupy.asarray = counting
    try:
        bench.train(step)
    finally:
        cupy.asarray = asarray
    return count


def torch_figures(size, batches, device="cuda"):
    """Milliseconds a step of PyTorch, eager and compiled; {} where it is not installed or cannot use the card."""
    try:
        import torch

        from .torch_step import TorchBench
    except ImportError:
        return {}
    if device == "cuda" and not torch.cuda.is_available():
        return {}
    result = {"version": torch.__version__}
    for name, compiled in (("eager_ms", False), ("compiled_ms", True)):
        try:
            bench = TorchBench(size, device, compiled)
            result[name] = 1e3 * timed(lambda i, b=bench: b.train(batches[i % len(batches)]), bench.synchronize)[0]
        except Exception as error:  # a compiler that is missing must not end the benchmark
            result[name] = None
            result[f"{name}_error"] = f"{type(error).__name__}: {error}"[:200]
    return result


def simcse_run(device, folder, files, dev, options):
    """A training run on real text: scores before and after, and sentences encoded a second."""
    started = time.perf_counter()
    result = train(files, dev=dev, out=Path(folder) / "run", device=device, progress=False, **options)
    seconds = time.perf_counter() - started
    texts = [f"the {i} sentences" for i in range(ENCODED)]
    result.encoder.encode(texts[:64])
    started = time.perf_counter()
    result.encoder.encode(texts, batch_size=256)
    encode = len(texts) / (time.perf_counter() - started)
    report = {key: result.report[key] for key in ("positives", "steps", "before", "after")}
    return {**report, "seconds": seconds, "encoded_per_s": encode}


def table(results):
    """The results as Markdown, with the date and the card in its caption."""
    lines = [
        f"Measured {results['date']} on one {results['probe']['card']}, CuPy {results['probe']['cupy']}.",
        "",
        "| model | ms a step | sentences/s | peak GiB | uploads a step | torch eager ms | torch.compile ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for size in results["sizes"]:
        ours, torch = results["steps"][size["name"]], results["torch"].get(size["name"], {})
        cells = [ours.get("ms"), ours.get("sentences_per_s"), ours.get("peak_gib"), ours["uploads"],
                 torch.get("eager_ms"), torch.get("compiled_ms")]  # fmt: skip
        shown = " | ".join("" if x is None else str(x) if isinstance(x, int) else f"{x:.4g}" for x in cells)
        lines.append(f"| {size['layers']} x {size['width']}, batch {size['batch']} x 2 | {shown} |")
    equal, run = results["equality"], results["run"]
    worst = max(step["worst_error"] for step in equal["steps"].values())
    lines += ["", f"Mask bits that differ from NumPy's: {equal['mask_bits_that_differ']}. "
              f"Largest error of a gradient against float64: {worst:.1e} (limit {equal['limit']:.0e})."]  # fmt: skip
    scores = ", ".join(
        f"{name} {run['before'][name]:.2f} -> {run['after'][name]:.2f}"
        for name in ("recall_at_1", "dev_spearman") if name in run["after"]
    )  # fmt: skip
    lines.append(f"SimCSE run of {run['steps']} steps: {scores}.")
    if run.get("encoded_per_s"):
        lines.append(f"Encoding: {run['encoded_per_s']:.0f} sentences/s.")
    return "\n".join(lines)


def measure(device, files, dev):
    """All results of a real device."""
    import cupy

    with tempfile.TemporaryDirectory() as folder:
        results = {"probe": probe(cupy), "equality": equality(device, SIZES[:2]), "steps": {}, "torch": {}}
        for size in SIZES:
            batches = [made_up_step(size.batch, seed) for seed in range(DIFFERENT_BATCHES)]
            results["steps"][size.name] = step_figures(cupy, device, size, batches)
            results["torch"][size.name] = torch_figures(size, batches)
        seconds = results["steps"]["small"]["ms"] / 1e3
        steps = int(np.clip(RUN_SECONDS / seconds, *RUN_STEPS))
        results["run"] = simcse_run(device, folder, files, dev, {"steps": steps})
    results["sizes"] = [vars(size) for size in SIZES]
    return results


def rehearse(device, files, dev):
    """The same keys from the stand-in, without any time: that every part runs, and the equalities."""
    import cupy

    results = {"probe": {"card": "stand-in for CuPy, no GPU", "cupy": "stand-in"}, "dry_run": True, "torch": {}}
    results["equality"], results["steps"] = equality(device, DRY), {}
    for size in DRY:
        step = made_up_step(size.batch)
        bench = Bench(size, device)
        for number in range(2):
            bench.train(step, number)
        results["steps"][size.name] = {"uploads": uploads_of(cupy, bench, step)}
    with tempfile.TemporaryDirectory() as folder:
        options = {"layers": 1, "width": 16, "batch": 8, "vocab": 150, "steps": 3, "max_length": 24}
        run = simcse_run(device, folder, files, dev, options)
    results["run"] = {key: value for key, value in run.items() if key not in ("seconds", "encoded_per_s")}
    results["sizes"] = [vars(size) for size in DRY]
    return results


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda", help="cuda or cuda:i (default cuda)")
    parser.add_argument("--data", action="append", default=[], metavar="FILE", help="text of the run")
    parser.add_argument("--dev", metavar="FILE", help="STS file for the dev score of the run")
    parser.add_argument("--out", default="gpu.json", metavar="FILE", help="where the results go (default gpu.json)")
    parser.add_argument("--dry-run", action="store_true", help="go through the motions without a GPU; no times")
    arguments = parser.parse_args(argv)
    stage = nullcontext()
    if arguments.dry_run:
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
        from device.library import installed

        stage = installed()
    try:
        with stage:
            device = resolve_device(arguments.device)
            results = (rehearse if arguments.dry_run else measure)(device, arguments.data, arguments.dev)
    except InputError as error:
        print(f"benchmarks.gpu: {error}", file=sys.stderr)
        return 2
    results["date"] = datetime.now(UTC).date().isoformat()
    write_json(arguments.out, results)
    print(table(results))
    if not arguments.dry_run:
        subprocess.run([sys.executable, "-m", "benchmarks.launches"], check=False)
    return 0 if results["equality"]["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
