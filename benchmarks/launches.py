"""How many kernels one training step launches: `python -m benchmarks.launches [--sentences B]`, on any machine.

A small model on a GPU spends its time on starting kernels, some microseconds each, not on arithmetic; so the number of
launches is the cost. It is counted on the stand-in for CuPy that the tests use (tests/device): one launch an array
operation, plus the copies that CuPy's batched matmul makes and the arithmetic of multi-array indexing.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

from .workload import SIZES, Bench, made_up_step

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from device.library import installed

LIMIT = 600  # launches a step of the small model may take


def count_step(size=SIZES[0]):
    """Launches of one training step of `size` by (module, "forward" or "backward"), a Counter."""
    step = made_up_step(size.batch)
    with installed() as meter:
        bench = Bench(size, "cuda:0")
        bench.train(step)
        meter.reset()
        meter.trace = True
        bench.train(step, 1)
        return Counter(meter.places)


def table(places):
    """Aligned text, one line a module, most launches first."""
    modules = sorted({module for module, _ in places}, key=lambda m: -places[m, "forward"] - places[m, "backward"])
    lines = [f"{'module':<24}{'forward':>9}{'backward':>10}{'both':>7}"]
    for module in modules:
        forward, backward = places[module, "forward"], places[module, "backward"]
        lines.append(f"{module:<24}{forward:>9}{backward:>10}{forward + backward:>7}")
    lines.append(f"{'a step':<43}{sum(places.values()):>7}")
    return "\n".join(lines)


def main(argv=None):
    names = [size.name for size in SIZES]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.launches", description=__doc__.split("\n")[0])
    parser.add_argument("--size", choices=names, default="small", help="model to count (default small)")
    size = SIZES[names.index(parser.parse_args(argv).size)]
    print(f"kernel launches of one training step: {size.layers} layers of width {size.width}, batch {size.batch} x 2")
    print(table(count_step(size)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
