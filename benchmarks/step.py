"""`python -m benchmarks.step`: a training step here and in PyTorch, on the same cores, as a ratio.

Each side runs in a process of its own and the processes take turns (turns.py); a round is a few steps on the same
made-up batches. Printed: the ratio of wall times (ours over theirs, median over the rounds, smallest and largest) and
of peak memory. PyTorch is eager torch.nn, its own attention kernel, fused AdamW, rows padded to the longest of the
batch. Where rows differ in length a third side runs, PyTorch given the same packing and the same [CLS]-only last layer
(torch_packed.py): its column, over padded PyTorch, is what leaving out padding buys by itself. Then, for every size,
where our time goes (where.py).
"""

import argparse
import json
import statistics
import time
from contextlib import ExitStack

import numpy as np

from nano_simcse.backend import keep_freed_memory
from nano_simcse.parallel import available_cores

from .turns import Child, peak_memory, serve, take_turns
from .where import where
from .workload import LONGEST, Bench, Size, made_up_step

SIZES = (
    Size("tiny", 2, 128, 2, 64),
    Size("base", 4, 256, 4, 64),
    Size("minilm", 6, 384, 12, 64, vocabulary=30522),
)
CASES = (("full", "mean"), ("wikipedia", "mean"), ("wikipedia", "cls"), ("twenty", "cls"))
BATCHES = 4  # different batches that the steps of a round go through
# Rows of each token count 3 ... 32 in 80,732 sentences of Wikipedia, cut at 32 tokens, for each size of vocabulary:
# WordPiece learned from them (mean 27.6 tokens), and BERT's (mean 26.2).
WIKIPEDIA = {
    8000: (15, 41, 125, 189, 281, 346, 410, 479, 556, 724, 850, 999, 1108, 1295, 1337, 1440, 1648, 1667, 1802, 1829,
           1874, 2022, 2013, 2073, 2079, 2030, 2080, 2074, 2076, 45270),
    30522: (16, 111, 209, 282, 352, 429, 482, 673, 843, 1037, 1219, 1407, 1603, 1624, 1831, 2021, 2092, 2259, 2287,
            2360, 2375, 2462, 2409, 2377, 2338, 2338, 2327, 2323, 2248, 36398),
}  # fmt: skip


def batches(size, lengths):
    """The Steps of a round. lengths: "full", all rows 32 tokens; "wikipedia", drawn as there; "twenty", normal with
    mean 20 and deviation 7, between 6 and 32."""
    made, counts = [], np.array(WIKIPEDIA[size.vocabulary])
    for seed in range(BATCHES):
        generator = np.random.default_rng(seed)
        rows = {
            "full": np.full(size.batch, LONGEST),
            "wikipedia": generator.choice(np.arange(3, LONGEST + 1), size.batch, p=counts / counts.sum()),
            "twenty": np.clip(np.rint(generator.normal(20, 7, size.batch)), 6, LONGEST).astype(int),
        }[lengths]
        made.append(made_up_step(size.batch, seed, rows))
    return made


def worker(side, size, lengths, pooling, threads):
    """Answer each line of standard input, a number of steps, with the seconds they took and the peak memory."""
    if side == "ours":
        keep_freed_memory()
        bench = Bench(size, "cpu", pooling=pooling, threads=threads)
    else:
        import torch

        from .torch_packed import TorchPackedBench
        from .torch_step import TorchBench

        torch.set_num_threads(threads)
        bench = (TorchBench if side == "torch" else TorchPackedBench)(size, "cpu", pooling=pooling)
    steps = batches(size, lengths)

    def answer(line):
        started = time.perf_counter()
        for i in range(int(line)):
            bench.train(steps[i % BATCHES])
        return [time.perf_counter() - started, peak_memory()]

    serve(answer)


def compare(size, lengths, pooling, threads, rounds, count):
    """The figures of one case: ratios of time and memory, and what packing alone buys PyTorch ("packed")."""
    names = ("ours", "torch") if lengths == "full" else ("ours", "torch", "packed")
    with ExitStack() as stack:
        sides = {}
        for name in names:
            arguments = ("--threads", str(threads), "--worker", name, size.name, lengths, pooling)
            sides[name] = stack.enter_context(Child("benchmarks.step", *arguments, threads=threads))
        take_turns(sides, BATCHES, 1)  # warm up
        replies = take_turns(sides, count, rounds)
    seconds = {name: np.array([reply[0] for reply in listed]) for name, listed in replies.items()}
    ratios = seconds["ours"] / seconds["torch"]
    packed = float(np.median(seconds["packed"] / seconds["torch"])) if "packed" in seconds else None
    return {
        "case": f"{lengths} lengths, {pooling}", "size": size.name,
        "ratio": statistics.median(ratios), "low": min(ratios), "high": max(ratios), "packed": packed,
        "ours_ms": 1000 * np.median(seconds["ours"]) / count, "torch_ms": 1000 * np.median(seconds["torch"]) / count,
        "memory_ratio": replies["ours"][-1][1] / replies["torch"][-1][1],
    }  # fmt: skip


def main():
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--rounds", type=int, default=7)
    ask.add_argument("--steps", type=int, default=8, help="steps a round")
    ask.add_argument("--threads", type=int, default=available_cores())
    ask.add_argument("--size", choices=[size.name for size in SIZES], action="append")
    ask.add_argument("--json", metavar="FILE", help="also write the results here")
    ask.add_argument("--where", action="store_true", help="only where the time goes, without PyTorch")
    ask.add_argument("--worker", nargs=4, metavar=("SIDE", "SIZE", "LENGTHS", "POOLING"), help=argparse.SUPPRESS)
    given = ask.parse_args()
    sizes = {size.name: size for size in SIZES}
    if given.worker:
        side, size, lengths, pooling = given.worker
        return worker(side, sizes[size], lengths, pooling, given.threads)
    chosen = [sizes[name] for name in given.size or sizes]
    results = []
    if not given.where:
        print(f"{given.threads} threads, {given.rounds} rounds of {given.steps} steps, over PyTorch's\n")
        print(f"{'case':24} {'size':7}  ratio   min   max  memory  ours ms  torch ms  torch packed")
        for lengths, pooling in CASES:
            for size in chosen:
                r = compare(size, lengths, pooling, given.threads, given.rounds, given.steps)
                results.append(r)
                figures = "{ratio:6.2f} {low:5.2f} {high:5.2f} {memory_ratio:7.2f} {ours_ms:8.1f} {torch_ms:9.1f}"
                packed = "" if r["packed"] is None else f"{r['packed']:.2f}"
                print(f"{r['case']:24} {r['size']:7} {figures.format(**r)} {packed:>13}", flush=True)
    for size in chosen:
        keep_freed_memory()
        bench = Bench(size, "cpu", pooling="cls", threads=given.threads)
        print(f"\n{size.name}, wikipedia lengths, cls: {where(bench, batches(size, 'wikipedia'), given.rounds)}")
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    return None


if __name__ == "__main__":
    main()
