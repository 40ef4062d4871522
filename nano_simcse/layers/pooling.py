"""From token vectors to one vector a sentence.

A reading is a weighted sum of hidden states: which states, which tokens. Its backward gives each token its weight
times the sentence's gradient.

    cls                 the [CLS] row of the last layer, through the tanh head in training and in use
    cls_before_pooler   the same row; the head only while training (what unsupervised SimCSE does)
    mean                mean over the tokens of the last layer, [CLS] and [SEP] included
    avg_first_last      mean over tokens of the average of the embedding output (state 0) and the last layer
    avg_top2            mean over tokens of the average of the last two layers

Names as in the SimCSE repository; there, too, state 0 is the output of the embedding block, not of layer 1.
"""

from ..backend import array_module

POOLINGS = ("cls", "cls_before_pooler", "mean", "avg_first_last", "avg_top2")


def states_read(pooling, count):
    """Indices of the hidden states that `pooling` averages, out of `count` = L + 1.

    >>> states_read("avg_first_last", 3)
    (0, 2)
    """
    if pooling == "avg_first_last":
        return (0, count - 1)
    if pooling == "avg_top2":
        return (count - 2, count - 1)
    return (count - 1,)


def pool(hidden, batch, pooling):
    """Pooled rows in the order of the sentences given.

    hidden: the L + 1 states (M, D) of `encoder_forward`; batch: the packed Batch they came from; pooling: one of
    POOLINGS. Returns (pooled (B, D), backward); backward(dpooled) -> list of L + 1 entries, the gradient (M, D) of
    each state that was read and None for the others.
    """
    xp = array_module(hidden[-1])
    read = states_read(pooling, len(hidden))
    number = hidden[-1].dtype.type
    if pooling.startswith("cls"):
        pooled = hidden[-1][batch.first]
    else:
        mixed = hidden[read[0]] if len(read) == 1 else (hidden[read[0]] + hidden[read[1]]) * number(0.5)
        pooled = xp.empty((len(batch.first), mixed.shape[1]), dtype=mixed.dtype)
        for group in batch.groups:
            rows = mixed[group.tokens].reshape(group.count, group.length, -1)
            pooled[group.rows] = xp.matmul(_token_weights(group, mixed), rows)[:, 0]

    def backward(dpooled):
        d = xp.zeros_like(hidden[-1])
        if pooling.startswith("cls"):
            d[batch.first] = dpooled
        else:
            for group in batch.groups:
                part = d[group.tokens].reshape(group.count, group.length, -1)
                part[...] = _token_weights(group, d).swapaxes(1, 2) * dpooled[group.rows][:, None, :]
            if len(read) == 2:
                d *= number(0.5)
        return [d if i in read else None for i in range(len(hidden))]

    return pooled, backward


def _token_weights(group, like):
    """(n, 1, T): 1 / (number of real tokens) on each real token, 0 on padding."""
    xp = array_module(like)
    if group.keep is None:
        return xp.full((group.count, 1, group.length), 1 / group.length, dtype=like.dtype)
    weights = group.keep.astype(like.dtype)[:, None, :]
    return weights / weights.sum(axis=2, keepdims=True)
