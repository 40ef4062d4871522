"""Small training cases that run on the host and on the stand-in, and the host made to work in the device's order."""

from types import SimpleNamespace

import numpy as np

from nano_simcse import model
from nano_simcse.backend import length_multiple, to_device, to_host
from nano_simcse.encoder import EncoderConfig, init_parameters
from nano_simcse.layers import embedding
from nano_simcse.masks import row_labels
from nano_simcse.parallel import Workers
from nano_simcse.parameters import Parameters
from nano_simcse.training import step as training_step
from nano_simcse.training.samplers import Step
from nano_simcse.training.step import Objective, add_masked_lm, contrastive_step

DEVICE = "cuda:0"
LENGTHS = (5, 18, 3, 12, 20, 7)  # grouped by 16 on a device: two groups, both with padding


def in_device_order(monkeypatch):
    """Group rows as on a device, and scatter in the order of the rows: the host then rounds as the stand-in does."""
    multiple = length_multiple(DEVICE)
    for module in (model, training_step):
        monkeypatch.setattr(module, "length_multiple", lambda device: multiple)
    scatter = embedding.__globals__["scatter_add"]
    monkeypatch.setitem(embedding.__globals__, "scatter_add", lambda target, ids, rows: (
        np.add.at if isinstance(target, np.ndarray) else scatter)(target, ids, rows))  # fmt: skip


def small_config(**options):
    return EncoderConfig(31, layers=2, width=16, heads=2, max_positions=24, **options)


def small_step(views=2, exclude=False):
    """A Step of six rows a view, by request with one pair that must not count as negatives."""
    generator = np.random.default_rng(1)
    rows = [generator.integers(0, 31, n).astype(np.int32) for n in LENGTHS * views]
    labels = row_labels(np.tile(np.arange(len(LENGTHS)), views), np.repeat(np.arange(views), len(LENGTHS)))
    hidden = None
    if exclude:
        hidden = np.zeros((len(LENGTHS), len(LENGTHS) * (views - 1)), bool)
        hidden[0, 3] = hidden[3, 0] = True
    return Step(rows, labels, views, hidden)


def encoder_on(device, config, seed=0):
    """What contrastive_step needs of a SentenceEncoder, with parameters large enough for every term to matter."""
    host = init_parameters(config, seed)
    host.flat[...] *= 5
    params = Parameters(host.shapes, to_device(host.flat, device))
    tokenizer = SimpleNamespace(cls_id=0, sep_id=1, pad_id=2, mask_id=3, vocab_size=config.vocab_size)
    return SimpleNamespace(params=params, config=config, device=device, tokenizer=tokenizer)


def loss_and_gradients(device, config, step, masks, pooling="mean", log_weight=0.0, mlm_weight=0.0):
    """(losses, {name: gradient}) of one step on `device`, fetched."""
    encoder = encoder_on(device, config)
    objective = Objective(pooling, 0.1, log_weight, mlm_weight)
    gradients = [encoder.params.zeros_like()]
    with Workers(1) as workers:
        losses = [contrastive_step(encoder, step, objective, masks, gradients, workers)[0]]
    if mlm_weight:
        losses.append(add_masked_lm(encoder, step, objective, masks, gradients[0], np.random.default_rng(0)))
    return [to_host(loss) for loss in losses], {name: to_host(g) for name, g in gradients[0].items()}
