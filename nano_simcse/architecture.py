"""The shape of an encoder: its configuration, the table of its parameters, their first values, its dropout sites."""

from dataclasses import dataclass

import numpy as np

from .errors import InputError
from .parameters import Parameters

INITIAL_STD = 0.02  # BERT's


@dataclass(frozen=True)
class EncoderConfig:
    """Architecture of an encoder; raises InputError where the numbers do not fit together.

    vocab_size V, layers L, width D, heads H (divides D), feed_forward F (4 D unless given), max_positions the
    longest row in tokens, types the number of token types (only type 0 is used), eps of the layer norms, gelu "erf"
    or "tanh", head: whether a tanh head stands on the pooled row, mlm: whether there is a masked-language-model head.
    """

    vocab_size: int
    layers: int = 2
    width: int = 128
    heads: int = 2
    feed_forward: int = 0
    max_positions: int = 512
    types: int = 2
    eps: float = 1e-12
    gelu: str = "erf"
    head: bool = False
    mlm: bool = False

    def __post_init__(self):
        if not self.feed_forward:
            object.__setattr__(self, "feed_forward", 4 * self.width)
        for name in ("vocab_size", "layers", "width", "heads", "feed_forward", "max_positions", "types"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; expected at least 1")
        if self.width % self.heads:
            raise InputError(f"width {self.width} is not divisible by heads {self.heads}")
        if self.heads > 256:
            raise InputError(f"heads is {self.heads}; expected at most 256")


def parameter_shapes(config):
    """Name -> shape of every parameter, in the order of the flat buffer. Weights are (in, out)."""
    width, inner = config.width, config.feed_forward
    shapes = {
        "embeddings.word": (config.vocab_size, width),
        "embeddings.position": (config.max_positions, width),
        "embeddings.type": (config.types, width),
        "embeddings.norm.gamma": (width,),
        "embeddings.norm.beta": (width,),
    }

    def add_linear(name, rows, columns):
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (rows, columns), (columns,)

    def add_norm(name):
        shapes[f"{name}.gamma"], shapes[f"{name}.beta"] = (width,), (width,)

    for i in range(config.layers):
        add_linear(f"layers.{i}.attention.qkv", width, 3 * width)
        add_linear(f"layers.{i}.attention.output", width, width)
        add_norm(f"layers.{i}.attention.norm")
        add_linear(f"layers.{i}.feed_forward.up", width, inner)
        add_linear(f"layers.{i}.feed_forward.down", inner, width)
        add_norm(f"layers.{i}.feed_forward.norm")
    if config.head:
        add_linear("head", width, width)
    if config.mlm:
        add_linear("mlm.transform", width, width)
        add_norm("mlm.norm")
        shapes["mlm.bias"] = (config.vocab_size,)
    return shapes


def init_parameters(config, seed=0, dtype=np.float32):
    """Fresh parameters, drawn on the host: weights from a normal distribution of standard deviation 0.02, gamma 1,
    biases and beta 0. The same seed gives the same bits."""
    params = Parameters(parameter_shapes(config), dtype=dtype)
    generator = np.random.default_rng(seed)
    for name, view in params.items():
        if name.endswith("gamma"):
            view[...] = 1
        elif view.ndim == 2:
            view[...] = generator.standard_normal(view.shape, dtype=np.float32) * np.float32(INITIAL_STD)
    return params


def dropout_inventory(config, lengths):
    """(site, name, units) of every dropout site for rows of the given token `lengths`: what one pass draws."""
    tokens, width = int(np.sum(lengths)), config.width
    squares = int(np.sum(np.square(lengths)))
    sites = [(0, "embeddings", tokens * width)]
    for i in range(config.layers):
        sites.append((3 * i + 1, f"layers.{i} attention probabilities", config.heads * squares))
        sites.append((3 * i + 2, f"layers.{i} attention output", tokens * width))
        sites.append((3 * i + 3, f"layers.{i} feed-forward output", tokens * width))
    return sites
