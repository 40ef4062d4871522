"""The training step that the benchmarks measure: made-up token rows, a real encoder, one optimiser step."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from nano_simcse.backend import to_device
from nano_simcse.encoder import EncoderConfig, init_parameters
from nano_simcse.masks import Masks, row_labels
from nano_simcse.optim import AdamW, clip_factor, global_norm
from nano_simcse.parallel import Workers
from nano_simcse.parameters import Parameters
from nano_simcse.training.samplers import Step
from nano_simcse.training.step import Objective, contrastive_step, gradient_buffers

VOCABULARY = 8000
LONGEST = 32
MEAN_LENGTH, LENGTH_SPREAD = 20, 6  # tokens


@dataclass(frozen=True)
class Size:
    """A model and its batch: layers L, width D, heads H, sentences a step B, and its vocabulary."""

    name: str
    layers: int
    width: int
    heads: int
    batch: int
    vocabulary: int = VOCABULARY

    def encoder_config(self, **options):
        return EncoderConfig(
            self.vocabulary, self.layers, self.width, self.heads, max_positions=LONGEST, head=True, **options
        )


SIZES = (Size("small", 2, 128, 2, 64), Size("middle", 6, 384, 6, 64), Size("base", 12, 768, 12, 64))


def made_up_step(batch, seed=0, lengths=None):
    """A Step of `batch` sentences under two views: token rows of about 20 tokens, at most 32, or of given lengths."""
    generator = np.random.default_rng(seed)
    if lengths is None:
        lengths = np.clip(generator.normal(MEAN_LENGTH, LENGTH_SPREAD, batch).round(), 4, LONGEST).astype(int)
    rows = [generator.integers(0, VOCABULARY, n).astype(np.int32) for n in lengths] * 2
    labels = row_labels(np.tile(np.arange(batch), 2), np.repeat(np.arange(2), batch))
    return Step(rows, labels, views=2, exclude=None)


class Bench:
    """A model with its optimiser on `device`, ready to take training steps."""

    def __init__(self, size, device, dtype=np.float32, seed=0, pooling="cls", threads=1):
        config = size.encoder_config()
        host = init_parameters(config, seed).astype(dtype)
        self.params = Parameters(host.shapes, to_device(host.flat, device))
        self.encoder = SimpleNamespace(params=self.params, config=config, device=device)
        self.objective = Objective(pooling, temperature=0.05)
        self.optimizer, self.workers = AdamW(self.params), Workers(threads)
        self.workers.__enter__()  # for as long as the process: starting threads is not what is measured
        self.gradients = gradient_buffers(self.params, threads)

    def gradients_of(self, step, number=0, rate=0.1):
        """Loss and gradients of one step, which they do not change."""
        masks = Masks(seed=0, step=number, rate=rate)
        loss, _ = contrastive_step(self.encoder, step, self.objective, masks, self.gradients, self.workers)
        return loss, self.gradients[0]

    def update(self, gradients):
        """One step of AdamW with the gradients clipped."""
        self.optimizer.step(gradients, 5e-4, self.workers, clip_factor(global_norm(gradients), 1.0))

    def train(self, step, number=0):
        """One training step: loss, gradients, clipping, AdamW. Returns the loss, 0-d, unlooked at."""
        loss, gradients = self.gradients_of(step, number)
        self.update(gradients)
        return loss
