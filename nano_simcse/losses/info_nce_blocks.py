"""InfoNCE without its matrix: the same loss and gradients, some hundred rows of logits at a time.

A row of the loss needs its own logits and nothing else. So the N x C matrix (C candidates) is computed, used for the
loss and for its share of the gradients, and forgotten, block of rows by block of rows:

    for a block of rows:
        z = q c^T / tau                         (rows, C)
        e = exp(z - top), total = sum e         over the negatives, top the largest of each row
        g = weight e                            dL/ds; weight from `log_one_plus`, the positive's entry is
                                                minus the sum of the others
        dq[rows] = g c
        dc      += g^T q[rows]

Three matrix products, as in the plain form, and no more arithmetic, but memory grows with N instead of N^2, and the
elementwise part works in the cache. `weight`, one number a row, is applied to the narrow side of the two products.

The symmetric loss also needs the sum of each column, which is known only after the last block. It takes two passes:
the first keeps a running largest logit and sum of every column (Milakov and Gimelshein, arXiv 1805.02867),

    top' = max(top, largest of the block),    total' = total exp(top - top') + sum_i exp(z_i - top'),

the second computes the logits again and has all it needs: one matrix product more.
"""

import numpy as np

from ..backend import array_module, on_host
from .log_one_plus import log_one_plus

BLOCKS_ABOVE = 1 << 22  # elements of the matrix (2048 x 2048) above which blocks are chosen: 16 MiB of float32
HOST_ELEMENTS, DEVICE_ELEMENTS = 1 << 21, 1 << 26  # of one block
LEAST_ROWS = 256  # fewer, and the matrix products slow down


def rows_per_block(n, candidates, like):
    """Rows to hold at once of an (n, candidates) matrix on the device of `like`; 0 where the whole matrix is better."""
    if n * candidates <= BLOCKS_ABOVE:
        return 0
    return max(LEAST_ROWS, (HOST_ELEMENTS if on_host(like) else DEVICE_ELEMENTS) // candidates)


class BlockedLogits:
    """The logits of N unit queries q (N, D) with C unit candidates c (C, D), made anew each time they are walked over.

    rows: per block; exclude, log_weight as in `info_nce`; own: hard negatives of each row, k.
    Iterating yields (block, place, z, positive): a slice of rows; the index of the positives in the block; z
    (rows, C), with -inf at the positives and at excluded candidates; and the logits (rows,) of the positives.
    """

    def __init__(self, q, c, temperature, rows, exclude, log_weight, own):
        self.q, self.c, self.rows, self.exclude, self.own = q, c, rows, exclude, own
        self.scaled, self.log_weight = q / q.dtype.type(temperature), q.dtype.type(log_weight)

    def __iter__(self):
        xp, n = array_module(self.q), len(self.q)
        for start in range(0, n, self.rows):
            block = slice(start, min(start + self.rows, n))
            row = xp.arange(block.stop - start)
            place = row, start + row
            z = self.scaled[block] @ self.c.T
            positive = z[place]
            if self.log_weight:
                first = n + self.own * (start + row[:, None])
                z[row[:, None], first + xp.arange(self.own)] += self.log_weight
            if self.exclude is not None:
                xp.copyto(z, z.dtype.type(-np.inf), where=self.exclude[block])
            z[place] = -np.inf
            yield block, place, z, positive


def one_way(logits, temperature):
    """(loss 0-d, dq (N, D), dc (C, D)) of BlockedLogits, the rows choosing among the columns."""
    q, c = logits.q, logits.c
    xp, number, n = array_module(q), q.dtype.type, len(q)
    row_loss, dq, dc = xp.empty(n, q.dtype), xp.empty_like(q), xp.zeros_like(c)
    for block, place, z, positive in logits:
        top = _finite_top(z.max(axis=1), positive)
        z -= top[:, None]
        e = xp.exp(z, out=z)
        total = e.sum(axis=1)
        row_loss[block], slope = log_one_plus(top - positive, total)
        e[place] = -total
        weight = (slope * number(1 / (n * temperature)))[:, None]
        dq[block] = (e @ c) * weight
        dc += e.T @ (q[block] * weight)
    return row_loss.mean(), dq, dc


def both_ways(logits, temperature):
    """The same, averaged with the loss of the columns choosing among the rows; only the first N columns choose."""
    q, c = logits.q, logits.c
    xp, number, n = array_module(q), q.dtype.type, len(q)
    nothing = number(-np.inf)
    top, total, own = (xp.empty(n, q.dtype) for _ in range(3))  # of the rows; own: logits of the positives
    column_top, column_total = xp.full(n, nothing), xp.zeros(n, q.dtype)
    for block, _, z, positive in logits:
        own[block] = positive
        square, before = z[:, :n], column_top
        column_top = xp.maximum(before, square.max(axis=0))
        reference = _finite_top(column_top, number(0))
        column_total *= xp.exp(before - reference)
        e = square - reference
        column_total += xp.exp(e, out=e).sum(axis=0)
        top[block] = _finite_top(z.max(axis=1), positive)
        z -= top[block, None]
        total[block] = xp.exp(z, out=z).sum(axis=1)

    column_top = _finite_top(column_top, own)
    row_loss, row_slope = log_one_plus(top - own, total)
    column_loss, column_slope = log_one_plus(column_top - own, column_total)
    scale = number(0.5 / (n * temperature))
    row_weight, column_weight = row_slope * scale, column_slope * scale
    pull = -(total * row_weight + column_total * column_weight)

    dq, dc = xp.empty_like(q), xp.zeros_like(c)
    for block, place, z, _ in logits:
        columns = z[:, :n] - column_top
        columns = xp.exp(columns, out=columns)
        columns *= column_weight
        z -= top[block, None]
        g = xp.exp(z, out=z)
        g *= row_weight[block, None]
        g[:, :n] += columns
        g[place] = pull[block]
        dq[block] = g @ c
        dc += g.T @ q[block]
    return (row_loss.mean() + column_loss.mean()) * number(0.5), dq, dc


def _finite_top(top, otherwise):
    """top, or `otherwise` where there is no negative at all (-inf): its sum is 0 whatever it is measured from."""
    return array_module(top).where(top == -np.inf, otherwise, top)
