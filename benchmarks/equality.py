"""What must be equal on a device and on the host, as numbers: bits of masks, and one training step per tensor.

Used by `python -m benchmarks.gpu` and by `pytest -m gpu`.
"""

import numpy as np

from nano_simcse.backend import to_device, to_host
from nano_simcse.masks import Masks, row_labels

from .workload import Bench, made_up_step

MASK_SHAPES = ((1, 1), (7, 5), (640, 32), (4096, 128), (2560, 1536))  # rows, width
GRADIENT_LIMIT = 2e-5  # largest difference of a tensor's gradient to the float64 one, in units of its largest entry


def mask_mismatches(device):
    """{(rows, width): number of differing bits} of masks made on `device` and on the host."""
    result = {}
    for site, (rows, width) in enumerate(MASK_SHAPES):
        masks = Masks(seed=1, step=2, rate=0.1)
        labels = row_labels(np.arange(rows), np.arange(rows) % 2)
        on_device = to_host(masks.keep(site, to_device(labels, device), width))
        result[rows, width] = int((on_device != masks.keep(site, labels, width)).sum())
    return result


def step_errors(device, size):
    """{name: (error on `device`, error of NumPy)} of the loss and of every gradient of one step with dropout.

    The error is the largest difference to a float64 step on the host, over the largest entry of that tensor.
    """
    step = made_up_step(size.batch)
    results = []
    for place, dtype in (("cpu", np.float64), (device, np.float32), ("cpu", np.float32)):
        loss, gradients = Bench(size, place, dtype).gradients_of(step)
        results.append({"loss": to_host(loss), **{name: to_host(g) for name, g in gradients.items()}})
    truth, on_device, on_host = results
    return {name: tuple(_error(x[name], truth[name]) for x in (on_device, on_host)) for name in truth}


def _error(x, truth):
    return float(np.abs(x - truth).max() / np.abs(truth).max())
