"""Sentence embeddings from dropout: SimCSE by hand in NumPy, every gradient derived and checked."""

from typing import TYPE_CHECKING

from .lazy import lazy_names

if TYPE_CHECKING:
    from .encoder import EncoderConfig, encoder_forward, init_parameters
    from .model import SentenceEncoder
    from .training import RunResult, TrainingConfig, compare, train

__version__ = "0.1.0"

__all__ = [
    "EncoderConfig",
    "RunResult",
    "SentenceEncoder",
    "TrainingConfig",
    "compare",
    "encoder_forward",
    "init_parameters",
    "train",
]

__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(("EncoderConfig", "encoder_forward", "init_parameters"), ".encoder"),
        **dict.fromkeys(("RunResult", "TrainingConfig", "compare", "train"), ".training"),
        "SentenceEncoder": ".model",
    },
)
