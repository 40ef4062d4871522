"""Which weight of a Hugging Face BERT is which parameter here: one table, used in both directions.

Their linear layers compute x W^T + b with W (out, in); ours x W + b with W (in, out), so each W is transposed.
Query, key and value are three layers there and one here, whose columns are [query | key | value]; the heads lie side
by side in each of the three on both sides. Embedding tables and norms are taken as they are.

A file may put "bert." before every name of the encoder (models with a task head do), and files converted from
TensorFlow say gamma and beta where later ones say weight and bias.
"""

import numpy as np

ENCODER = {
    "embeddings.word": ("embeddings.word_embeddings.weight",),
    "embeddings.position": ("embeddings.position_embeddings.weight",),
    "embeddings.type": ("embeddings.token_type_embeddings.weight",),
    "embeddings.norm.gamma": ("embeddings.LayerNorm.weight",),
    "embeddings.norm.beta": ("embeddings.LayerNorm.bias",),
}
LAYER = {
    "attention.qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "attention.output": ("attention.output.dense",),
    "attention.norm": ("attention.output.LayerNorm",),
    "feed_forward.up": ("intermediate.dense",),
    "feed_forward.down": ("output.dense",),
    "feed_forward.norm": ("output.LayerNorm",),
}
HEAD = {"head.weight": ("pooler.dense.weight",), "head.bias": ("pooler.dense.bias",)}
MLM = {
    "mlm.transform.weight": ("cls.predictions.transform.dense.weight",),
    "mlm.transform.bias": ("cls.predictions.transform.dense.bias",),
    "mlm.norm.gamma": ("cls.predictions.transform.LayerNorm.weight",),
    "mlm.norm.beta": ("cls.predictions.transform.LayerNorm.bias",),
    "mlm.bias": ("cls.predictions.bias",),
}
# Second names of a weight that is in the table: the masked-language-model head reads the word embeddings.
TIED = {
    "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
# In many files and no part of a sentence encoder: the numbers 0, 1, 2, ... and the next-sentence classifier.
IGNORED = ("embeddings.position_ids", "cls.seq_relationship.weight", "cls.seq_relationship.bias")

PREFIX = "bert."


def name_table(config):
    """Our name -> tuple of their names, in the order of the flat buffer, for parameter_shapes(config)."""
    table = dict(ENCODER)
    for i in range(config.layers):
        for ours, theirs in LAYER.items():
            ends = ("gamma", "beta") if ours.endswith("norm") else ("weight", "bias")
            for end, their_end in zip(ends, ("weight", "bias"), strict=True):
                names = tuple(f"encoder.layer.{i}.{name}.{their_end}" for name in theirs)
                table[f"layers.{i}.{ours}.{end}"] = names
    return table | (HEAD if config.head else {}) | (MLM if config.mlm else {})


def plain(name):
    """A stored name without the prefix and in the later spelling of the norms.

    >>> plain("bert.embeddings.LayerNorm.gamma")
    'embeddings.LayerNorm.weight'
    """
    name = name.removeprefix(PREFIX)
    for old, new in ((".LayerNorm.gamma", ".LayerNorm.weight"), (".LayerNorm.beta", ".LayerNorm.bias")):
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name


def their_shape(ours, shape, parts):
    """Shape of each of the `parts` weights that make up our parameter of this name and shape."""
    shape = (*shape[:-1], shape[-1] // parts)
    return shape[::-1] if is_linear(ours) else shape


def to_ours(ours, weights):
    """Our array from theirs, in the order of the table."""
    return np.concatenate([w.T if is_linear(ours) else w for w in weights], axis=-1)


def to_theirs(ours, array, parts):
    """Their arrays from ours: undoes `to_ours`, bit for bit."""
    split = np.split(array, parts, axis=-1) if parts > 1 else [array]
    return [np.ascontiguousarray(a.T if is_linear(ours) else a) for a in split]


def is_linear(ours):
    """Whether our parameter of this name is the matrix of a linear layer, stored transposed there."""
    return ours.endswith(".weight")
