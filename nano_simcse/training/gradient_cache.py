"""A large batch in the memory of a small one: the gradient cache.

The loss couples all rows of a batch, but only through their embeddings. With z_i = f(x_i, theta) the chain rule is

    dL/dtheta = sum_i (dz_i/dtheta)^T dL/dz_i,        dL/dz_i a function of z_1 ... z_n alone.

So the step takes two passes over the encoder:

    1.  all embeddings z, chunk by chunk, keeping nothing of the encoder's insides
        the loss of the whole batch and dL/dz, the "cache": n x D numbers
    2.  chunk by chunk: the same embeddings again, this time with a backward, which gets its rows of dL/dz

The gradient is that of the whole batch, to rounding; memory is that of one chunk plus z and dL/dz; time is one more
forward. It is exact only if the second pass repeats the first: with dropout, under the same masks. Masks are a function
of the step and the row (masks.py), not of the order of drawing, so nothing has to be stored for that.

Accumulating the gradients of small batches instead is not the same: each row then has the negatives of its own small
batch only, so it is another, easier loss.

Source: Gao, Zhang, Han and Callan, arXiv 2101.06983.
"""

import math

import numpy as np

from ..backend import array_module, to_device
from .step import add_up, contrastive_loss, embed_rows, equal_parts, shares_of, trained_rows


def cached_step(encoder, step, objective, masks, gradients, workers, chunk):
    """Loss and gradients of one Step, as `contrastive_step` computes them, in the memory of `chunk` sentences.

    Arguments and results as there, but gradients: one buffer for every worker; chunk: sentences (of V rows each) whose
    activations are held at a time, over all workers. Chunks have equal numbers of tokens, not of rows, so that long
    rows do not need more memory than short ones.
    """
    params, xp, ranks = encoder.params, array_module(encoder.params.flat), workers.ranks
    count = pieces_of(step, chunk * ranks.size, len(gradients))
    z = xp.empty((len(step.rows), encoder.config.width), dtype=params.flat.dtype)
    shares = shares_of(step, trained_rows(step, objective), ranks)
    own = shares[ranks.rank]
    pieces = embed_without_gradient(encoder, params, step, own, objective, masks, workers, count, into=z)
    ranks.all_gather_rows(z, shares)
    if objective.queue:
        objective.queue.encode_keys(encoder, step, objective, masks, workers, count, into=z)

    loss, dz = contrastive_loss(z, step, objective, ranks, shares)

    def backward(worker):
        gradients[worker].flat.fill(0)
        for piece in pieces[worker :: len(gradients)]:
            dpiece = dz[to_device(np.array(piece), encoder.device)]
            # nothing may keep this backward, and with it the piece's activations, until the next piece has its own
            embed_rows(encoder, params, step, piece, objective, masks)[1](dpiece, gradients[worker])

    workers.map(backward, range(len(gradients)))
    add_up(gradients, workers)
    return loss, z


def pieces_of(step, chunk, workers):
    """Number of parts to cut a Step into so that one part per worker makes up `chunk` sentences."""
    return math.ceil(len(step.rows) / step.views / chunk) * workers


def embed_without_gradient(encoder, params, step, rows, objective, masks, workers, count, into):
    """Write the embeddings of the numbers `rows` of a Step to their places in `into` (V * B, D), in `count` parts of
    equal length that the workers take in turn. params: of the trained encoder or of one like it. Returns the parts."""
    pieces = equal_parts(step, rows, count)

    def forward(worker):
        for piece in pieces[worker :: workers.count]:
            z, _ = embed_rows(encoder, params, step, piece, objective, masks, grad=False)
            into[to_device(np.array(piece), encoder.device)] = z

    workers.map(forward, range(workers.count))
    return pieces
