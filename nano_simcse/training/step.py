"""One training step, the path of one batch: token rows to loss, and the gradient back down the same stairs."""

import math
from dataclasses import dataclass

import numpy as np

from ..backend import array_module, device_of, length_multiple, to_device
from ..data.batches import pack
from ..encoder import encoder_forward
from ..losses import info_nce
from ..losses.info_nce_rows import info_nce_rows
from ..masks import VIEW_SHIFT
from ..model import embed
from ..parallel import each_span, split_by_tokens
from ..ranks import SERIAL
from .mlm import hide_tokens, mlm_loss

SHARING = 2  # workers that add to one gradient buffer


@dataclass(frozen=True)
class Objective:
    """What is minimised: InfoNCE at this temperature, with the weight of own hard negatives, of the MLM loss.

    queue: MomentumQueue, whose slow encoder then makes the keys and whose rows are further negatives; or None.
    """

    pooling: str
    temperature: float
    log_weight: float = 0.0
    mlm_weight: float = 0.0
    queue: object = None


def contrastive_step(encoder, step, objective, masks, gradients, workers):
    """Loss and gradients of one Step.

    encoder: SentenceEncoder (its parameters are read); step: samplers.Step; masks: Masks of this step;
    gradients: buffers as `gradient_buffers` makes them, overwritten; the sum ends in the first.
    Returns (loss 0-d, embeddings z (V * B, D)). Each worker takes rows of about equal total length; the loss needs
    all of them. Of several ranks (workers.ranks) each takes its share of the rows, and the gradients are of that share.
    """
    params, xp, ranks = encoder.params, array_module(encoder.params.flat), workers.ranks
    shares = shares_of(step, trained_rows(step, objective), ranks)
    parts = equal_parts(step, shares[ranks.rank], workers.count)
    gradients = gradients[: max(1, math.ceil(len(parts) / SHARING))]

    def forward(part):
        return embed_rows(encoder, params, step, part, objective, masks)

    shards = workers.map(forward, parts)
    z = xp.empty((len(step.rows), encoder.config.width), dtype=params.flat.dtype)
    places = [to_device(np.array(part), encoder.device) for part in parts]
    for place, (part_z, _) in zip(places, shards, strict=True):
        z[place] = part_z
    ranks.all_gather_rows(z, shares)
    if objective.queue:
        objective.queue.encode_keys(encoder, step, objective, masks, workers, workers.count, into=z)

    loss, dz = contrastive_loss(z, step, objective, ranks, shares)

    def backward(i):
        shards[i][1](dz[places[i]], gradients[i // SHARING])

    set_to_zero(gradients, workers)
    workers.map(backward, range(len(parts)))
    add_up(gradients, workers)
    return loss, z


def gradient_buffers(params, workers, in_chunks=False):
    """Parameters buffers for the gradients of a step that `workers` threads take: one for every two of them.

    Two may add to one buffer of zeros in either order, because 0 + a + b = 0 + b + a to the last bit. Three may not,
    nor two that add several times, `in_chunks`.
    """
    return [params.zeros_like() for _ in range(workers if in_chunks else math.ceil(workers / SHARING))]


def set_to_zero(gradients, workers):
    """Clear the gradient buffers, each thread its span of them."""

    def clear(span):
        for buffer in gradients:
            buffer.flat[span] = 0

    each_span(clear, gradients[0].flat.size, workers)


def add_up(gradients, workers):
    """Add all gradient buffers to the first."""

    def add(span):
        for other in gradients[1:]:
            gradients[0].flat[span] += other.flat[span]

    each_span(add, gradients[0].flat.size, workers)


def trained_rows(step, objective):
    """Rows of a Step that the trained encoder embeds: all, or with a queue the first view, the queries."""
    return range(len(step.rows) // step.views if objective.queue else len(step.rows))


def shares_of(step, rows, ranks):
    """The numbers `rows` of a Step in one list for every rank, of about equal total length; some may be empty."""
    shares = equal_parts(step, rows, ranks.size)
    return shares + [[]] * (ranks.size - len(shares))


def equal_parts(step, rows, count):
    """The numbers `rows`, in order of length, in at most `count` lists of about equal total length."""
    lengths = [len(row) for row in step.rows]
    return split_by_tokens(lengths, sorted(rows, key=lengths.__getitem__), count)


def embed_rows(encoder, params, step, part, objective, masks, grad=True):
    """Embeddings of the rows `part` of a Step as training sees them, and their backward (None without grad)."""
    grouping = {"multiple": length_multiple(encoder.device), "longest": encoder.config.max_positions}
    batch = pack([step.rows[i] for i in part], step.labels[part], **grouping).to(encoder.device)
    return embed(params, encoder.config, batch, objective.pooling, masks, training=True, grad=grad)


def contrastive_loss(z, step, objective, ranks=SERIAL, shares=None):
    """InfoNCE of the embeddings z (V * B, D), view after view: (loss 0-d, dz).

    With a queue the keys are constants of a slow encoder, and only the queries' part of dz is of use. Of several ranks
    each computes the terms of its part of the queries, and gets dz of its share of the rows alone.
    """
    queries, keys, *negatives = array_module(z).split(z, step.views)
    past, exclude = objective.queue.negatives(step) if objective.queue else (None, step.exclude)
    options = {
        "hard_negatives": negatives[0] if negatives else None,
        "log_weight": objective.log_weight if negatives else 0.0,
        "exclude": None if exclude is None else to_device(exclude, device_of(z)),
        "queue": past,
    }
    if ranks.size == 1:
        loss, backward = info_nce(queries, keys, objective.temperature, **options)
    else:
        loss, backward = info_nce_rows(queries, keys, objective.temperature, ranks.part(len(queries)), **options)
    dz = array_module(z).concatenate(backward())
    ranks.all_reduce(loss)
    ranks.reduce_scatter_rows(dz, shares)
    return loss, dz


def add_masked_lm(encoder, step, objective, masks, gradients, generator):
    """Add the gradient of mlm_weight times the MLM loss of the first view to `gradients`; returns the loss, 0-d.

    The hidden text passes through the encoder once more, as one view more than the step has: with independent masks it
    has masks of its own, with shared ones those of all views. Which tokens are hidden depends on the rows alone, not on
    how they are packed.
    """
    rows = step.rows[: len(step.rows) // step.views]
    labels = step.labels[: len(rows)] + (np.uint64(step.views) << np.uint64(VIEW_SHIFT))
    tokenizer, longest = encoder.tokenizer, encoder.config.max_positions
    special = [tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id]
    ids, places, targets = hide_tokens(
        np.concatenate(rows), special, tokenizer.mask_id, tokenizer.vocab_size, generator
    )
    ends = np.cumsum([len(row) for row in rows])
    batch = pack(np.split(ids, ends[:-1]), labels, length_multiple(encoder.device), tokenizer.pad_id, longest)
    row = np.searchsorted(ends, places, side="right")
    places = batch.first[row] + places - (ends[row] - [len(rows[i]) for i in row])
    batch = batch.to(encoder.device)
    places, targets = (to_device(x, encoder.device) for x in (places, targets))
    hidden, encoder_back = encoder_forward(encoder.params, encoder.config, batch, masks)
    loss, back = mlm_loss(encoder.params, encoder.config, hidden[-1], places, targets)
    encoder_back(back(objective.mlm_weight, gradients), into=gradients)
    return loss
