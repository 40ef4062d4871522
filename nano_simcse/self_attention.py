"""The attention block of a layer: project to queries, keys and values, attend group by group, project back.

    y = dropout(W_o attention(x W_q, x W_k, x W_v))

`self_attention` computes it for every token. `first_token_attention` computes it for the first token of each row
only, which is all that a [CLS] reading of the last layer looks at: queries, output projection and everything after
them on B rows instead of M. The numbers it gives are the same, and so are its dropout masks.
"""

import numpy as np

from .backend import array_module
from .layers import attention, dropout, linear
from .masks import HEAD_SHIFT
from .parameters import accumulate


def drop(masks, site, x, labels):
    """Dropout at one site of rows with these mask labels; without masks, the identity."""
    if masks is None:
        return x, lambda dy: dy
    return dropout(x, masks.keep(site, labels, x.shape[1]), masks.scale)


def self_attention(params, config, batch, masks, labels, i, x):
    name = f"layers.{i}.attention"
    qkv, qkv_back = linear(x, params[f"{name}.qkv.weight"], params[f"{name}.qkv.bias"])
    context, undo = array_module(x).empty_like(x), []
    for group, keep in zip(batch.groups, _keeps(masks, 3 * i + 1, batch, labels), strict=True):
        if keep is not None:
            keep = keep.reshape(group.count, config.heads, group.length, group.length)
        q, k, v = _heads(qkv, group, 3, config.heads)
        (out,) = _heads(context, group, 1, config.heads)
        _, back = attention(q, k, v, group.keep, keep, 1.0 if masks is None else masks.scale, out=out)
        undo.append(back)
    projected, output_back = linear(context, params[f"{name}.output.weight"], params[f"{name}.output.bias"])
    y, drop_back = drop(masks, 3 * i + 2, projected, batch.tokens)

    def backward(dy, gradients):
        dcontext, dweight, dbias = output_back(drop_back(dy))
        accumulate(gradients, f"{name}.output", ("weight", "bias"), dweight, dbias)
        dqkv = array_module(dy).empty_like(qkv)
        for group, back in zip(batch.groups, undo, strict=True):
            (do,) = _heads(dcontext, group, 1, config.heads)
            back(do, out=_heads(dqkv, group, 3, config.heads))
        dx, dweight, dbias = qkv_back(dqkv)
        accumulate(gradients, f"{name}.qkv", ("weight", "bias"), dweight, dbias)
        return dx

    return y, backward


def _keeps(masks, site, batch, labels):
    """For each group the dropout mask of its attention probabilities, one row for each of its labels, or None."""
    if masks is None:
        return [None] * len(batch.groups)
    return masks.keep_each(site, labels, [group.length for group in batch.groups])


def _heads(x, group, parts, heads):
    """Views (n, H, T, K) of one group's rows of x (M, parts * D), one view for each of the parts."""
    width = x.shape[1] // (parts * heads)
    split = x[group.tokens].reshape(group.count, group.length, parts, heads, width)
    return split.transpose(2, 0, 3, 1, 4)


def attention_labels(batch, heads):
    """For each group, the labels uint64 (n * H * T,) of the rows of its attention probabilities: the sentence's label
    plus the head and the query position. Every layer has the same ones."""
    xp, labels, before = array_module(batch.sequences), [], 0
    head = (xp.arange(heads, dtype=np.uint64) << np.uint64(HEAD_SHIFT))[:, None]
    for group in batch.groups:
        rows = batch.sequences[before : before + group.count, None, None]
        labels.append((rows + head + xp.arange(group.length, dtype=np.uint64)).reshape(-1))
        before += group.count
    return labels


def first_token_attention(params, config, batch, masks, labels, i, x):
    """As `self_attention`, for the first token of each row: y (B, D) in the order the rows were given.

    One query a row looks at all tokens, so no token needs keys or values of its own. With a 1 appended to x, so that
    the biases are a last row of the weights W_k and W_v (D + 1, K) of a head,

        q . (x_t W_k) = (W_k q) . x_t        sum_t a_t (x_t W_v) = (sum_t a_t x_t) W_v

    and the head attends from W_k q to the tokens themselves: products with D x D matrices for B rows instead of M.
    """
    name, width, xp = f"layers.{i}.attention", x.shape[1], array_module(x)
    weight, bias = params[f"{name}.qkv.weight"], params[f"{name}.qkv.bias"]
    tokens = xp.concatenate([x, xp.ones((len(x), 1), x.dtype)], axis=1)
    heads_of = xp.concatenate([weight, bias[None]]).reshape(width + 1, 3, config.heads, -1).transpose(1, 2, 0, 3)
    wq, wk, wv = heads_of  # (H, D + 1, K)
    first = tokens[batch.first]
    q = first @ wq  # (H, B, K)
    look = (q @ wk.swapaxes(1, 2)).swapaxes(0, 1)  # (B, H, D + 1)
    seen, undo = xp.empty_like(look), []
    if masks is not None:
        labels = [part[:: group.length] for part, group in zip(labels, batch.groups, strict=True)]  # of query 0
    for group, keep in zip(batch.groups, _keeps(masks, 3 * i + 1, batch, labels), strict=True):
        keep = None if keep is None else keep.reshape(group.count, 1, config.heads, group.length)
        cells = tokens[group.tokens].reshape(group.count, 1, group.length, width + 1)
        scale, root = 1.0 if masks is None else masks.scale, q.shape[2] ** -0.5
        out, back = attention(look[group.rows][:, None], cells, cells, group.keep, keep, scale, root=root)
        seen[group.rows] = out[:, 0]
        undo.append(back)
    context = (seen.swapaxes(0, 1) @ wv).swapaxes(0, 1).reshape(len(first), width)
    projected, output_back = linear(context, params[f"{name}.output.weight"], params[f"{name}.output.bias"])
    y, drop_back = drop(masks, 3 * i + 2, projected, batch.tokens[batch.first])

    def backward(dy, gradients):
        dcontext, dweight, dbias = output_back(drop_back(dy))
        accumulate(gradients, f"{name}.output", ("weight", "bias"), dweight, dbias)
        dheads = dcontext.reshape(len(first), config.heads, -1).swapaxes(0, 1)
        dseen, dlook = (dheads @ wv.swapaxes(1, 2)).swapaxes(0, 1), xp.empty_like(look)
        dx = xp.empty_like(tokens, shape=(len(tokens), width))
        for group, back in zip(batch.groups, undo, strict=True):
            dlook_group, dkeys, dvalues = back(dseen[group.rows][:, None])
            dlook[group.rows] = dlook_group[:, 0]
            dkeys += dvalues  # the tokens are both
            dx[group.tokens] = dkeys.reshape(-1, width + 1)[:, :width]
        dlook = dlook.swapaxes(0, 1)
        dq = dlook @ wk
        dwq, dwk, dwv = first.T @ dq, dlook.swapaxes(1, 2) @ q, seen.transpose(1, 2, 0) @ dheads
        dtable = xp.stack([dwq, dwk, dwv]).transpose(2, 0, 1, 3).reshape(width + 1, 3 * width)
        accumulate(gradients, f"{name}.qkv", ("weight", "bias"), dtable[:width], dtable[width])
        dx[batch.first] += (dq @ wq.swapaxes(1, 2)).sum(axis=0)[:, :width]  # the first tokens are distinct
        return dx

    return y, backward
