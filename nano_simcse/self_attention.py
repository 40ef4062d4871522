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


def drop(masks, site, x, labels):
    """Dropout at one site of rows with these mask labels; without masks, the identity."""
    if masks is None:
        return x, lambda dy: dy
    return dropout(x, masks.keep(site, labels, x.shape[1]), masks.scale)


def accumulate(gradients, name, parts, *values):
    """gradients[name.part] += value for each part."""
    for part, value in zip(parts, values, strict=True):
        gradients[f"{name}.{part}"] += value


def self_attention(params, config, batch, masks, labels, i, x):
    name = f"layers.{i}.attention"
    qkv, qkv_back = linear(x, params[f"{name}.qkv.weight"], params[f"{name}.qkv.bias"])
    context, undo = array_module(x).empty_like(x), []
    for number, group in enumerate(batch.groups):
        keep = None if masks is None else masks.keep(3 * i + 1, labels[number], group.length)
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
    """As `self_attention`, for the first token of each row: y (B, D) in the order the rows were given."""
    name, width, xp = f"layers.{i}.attention", x.shape[1], array_module(x)
    weight, bias = params[f"{name}.qkv.weight"], params[f"{name}.qkv.bias"]
    queries, q_back = linear(x[batch.first], weight[:, :width], bias[:width])
    kv, kv_back = linear(x, weight[:, width:], bias[width:])
    context, undo = xp.empty_like(queries), []
    for number, group in enumerate(batch.groups):
        keep, shape = None, (group.count, config.heads, 1, group.length)
        if masks is not None:
            first = labels[number].reshape(group.count, config.heads, group.length)[:, :, 0].reshape(-1)
            keep = masks.keep(3 * i + 1, first, group.length)
        keep = None if keep is None else keep.reshape(shape)
        k, v = _heads(kv, group, 2, config.heads)
        q = queries[group.rows].reshape(group.count, config.heads, 1, -1)
        out, back = attention(q, k, v, group.keep, keep, 1.0 if masks is None else masks.scale)
        context[group.rows] = out.reshape(group.count, width)
        undo.append(back)
    projected, output_back = linear(context, params[f"{name}.output.weight"], params[f"{name}.output.bias"])
    y, drop_back = drop(masks, 3 * i + 2, projected, batch.tokens[batch.first])

    def backward(dy, gradients):
        dcontext, dweight, dbias = output_back(drop_back(dy))
        accumulate(gradients, f"{name}.output", ("weight", "bias"), dweight, dbias)
        dq, dkv = xp.empty_like(queries), xp.empty_like(kv)
        for group, back in zip(batch.groups, undo, strict=True):
            do = dcontext[group.rows].reshape(group.count, config.heads, 1, -1)
            dq_group, _, _ = back(do, out=(None, *_heads(dkv, group, 2, config.heads)))
            dq[group.rows] = dq_group.reshape(group.count, width)
        dx, dweight, dbias = kv_back(dkv)
        gradients[f"{name}.qkv.weight"][:, width:] += dweight
        gradients[f"{name}.qkv.bias"][width:] += dbias
        dfirst, dweight, dbias = q_back(dq)
        gradients[f"{name}.qkv.weight"][:, :width] += dweight
        gradients[f"{name}.qkv.bias"][:width] += dbias
        dx[batch.first] += dfirst  # the first tokens are distinct
        return dx

    return y, backward
