"""More negatives than a batch has: a queue of past keys, made by an encoder that moves slowly.

Keys of earlier steps cost nothing to keep, but the encoder that made them has moved on since. A second encoder that
follows the trained one at a distance makes keys that stay comparable:

    slow <- m slow + (1 - m) fast          after every step (memory.follow)

A step embeds the queries, the first view, with the trained encoder, and the keys, the other views, with the slow one.
The negatives of a query are the keys of the batch and the K rows of the queue; only the queries have a gradient. Then
the positives' keys enter the queue and the oldest rows leave it.

The ring of rows, the numbers of their texts and the slow encoder are flat buffers and part of the checkpoint; what is
full and what comes next follows from the number of rows pushed so far.

Source: He et al., arXiv 1911.05722 (there the keys of the batch are no negatives of each other).
"""

import numpy as np

from ..backend import array_module, device_of, to_device
from ..memory import follow
from ..parameters import Parameters
from .gradient_cache import embed_without_gradient
from .step import shares_of


class MomentumQueue:
    """The slow encoder and the last `size` keys.

    params: Parameters of the trained encoder, whose copy the slow one starts as; size: K >= 1; width: D; momentum: m in
    [0, 1). pushed: rows that have entered so far.
    """

    def __init__(self, params, size, width, momentum):
        xp, flat = array_module(params.flat), params.flat
        self.size, self.momentum, self.slow, self.pushed = size, momentum, params.copy(), 0
        self.keys = Parameters({"keys": (size, width)}, xp.zeros(size * width, flat.dtype))
        self.texts = Parameters({"texts": (size, 2)}, np.full(2 * size, -1))  # on the host: anchor and key by number

    def encode_keys(self, encoder, step, objective, masks, workers, count, into):
        """Write the slow encoder's embeddings of all views but the first to their places in `into` (V * B, D)."""
        ranks = workers.ranks
        shares = shares_of(step, range(len(step.rows) // step.views, len(step.rows)), ranks)
        embed_without_gradient(
            encoder, self.slow, step, shares[ranks.rank], objective, masks, workers, count, into
        )
        ranks.all_gather_rows(into, shares)

    def negatives(self, step):
        """(rows (Q, D) of the queue, exclude) for `info_nce`: None, or bool (B, candidates), True where a candidate
        of the batch or the queue is known to be an answer to the query: the same text, or another key of its text."""
        filled = min(self.size, self.pushed)
        if not filled:
            return None, step.exclude
        anchors, keys = step.texts[:, :1], step.texts[:, 1:2]
        past_anchors, past_keys = self.texts["texts"][:filled].T
        exclude = step.exclude
        if exclude is not None or np.isin(self.texts["texts"][:filled], step.texts[:, :2]).any():
            known = (past_keys == anchors) | (past_keys == keys) | (past_anchors == anchors)
            if exclude is None:
                exclude = np.zeros((len(anchors), (step.views - 1) * len(anchors)), bool)
            exclude = np.concatenate([exclude, known], axis=1)
        return self.keys["keys"][:filled], exclude

    def advance(self, params, step, z):
        """After the update of the trained parameters: move the slow encoder, let the keys z[B : 2 B] of the step in."""
        follow(self.slow, params, self.momentum)
        count = len(step.texts)
        kept = min(count, self.size)  # of a batch larger than the queue, the last rows
        places = (self.pushed + np.arange(count - kept, count)) % self.size
        self.texts["texts"][places] = step.texts[count - kept :, :2]
        self.keys["keys"][to_device(places, device_of(z))] = z[2 * count - kept : 2 * count]
        self.pushed += count

    def buffers(self):
        """Name -> Parameters of what must be saved to resume (besides `pushed`)."""
        return {"momentum_encoder": self.slow, "queue": self.keys, "queue_texts": self.texts}
