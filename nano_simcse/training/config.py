"""Every choice of a training run in one frozen record, checked before any work is done."""

import difflib
import json
import math
import numbers
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..layers import POOLINGS
from ..masks import MODES
from ..optim import SCHEDULES

POSITIVES = ("dropout", "pairs", "crop")
WORD_VECTORS = ("ppmi", "random")


@dataclass(frozen=True)
class TrainingConfig:
    """Options of `train`; None means "chosen from the other options" (see `filled`).

    positives      "dropout": the same sentence under two masks (SimCSE); "pairs": two texts that belong together;
                   "crop": two random windows of one text (Contriever)
    init           model to go on from (folder, "package:NAME" or hub id), with its tokenizer and architecture
    layers, width, heads, vocab       shape of the encoder (feed-forward is 4 x width) and size of its vocabulary
    word_vectors   what a new encoder's word embeddings begin with: "ppmi", vectors counted in the training text
                   (ppmi.py), or "random"; with init they are the checkpoint's
    steps, epochs  length of the run; steps wins where both are given
    batch          sentences (or pairs) per step; each has the others as negatives
    chunk          sentences whose activations are held at a time: memory of a small batch, gradients of the whole one
                   (gradient_cache.py); 0 takes the batch at once
    queue          past keys that serve as further negatives, made by a second encoder that follows the trained one as
                   slow <- momentum * slow + (1 - momentum) * trained (queue.py); 0 for none
    temperature    tau of InfoNCE; 0.05 is the paper's, for a pretrained encoder
    lr, warmup, schedule, weight_decay, clip    AdamW: peak rate, share of the steps that warms up, decay of the rate,
                   decoupled weight decay, limit of the global gradient norm
    dropout, masks rate and mode ("independent", "shared", "off")
    max_length     tokens kept of each text
    pooling, head  reading of the encoder; tanh head while training
    log_weight     added to the logits of a row's own hard negative, for triples
    mlm_weight     weight of the masked-language-model loss beside InfoNCE; 0 leaves it out
    held_out       pairs that training sees nothing of, at most: 10 of 13 to report on, 3 to choose by; 0 trains on all
    eval_every     steps between evaluations on the dev file or the validation pairs
    seed, threads  the same seed and number of threads give the same bits on the same machine
    """

    positives: str | None = None
    init: str | None = None
    layers: int = 2
    width: int = 128
    heads: int = 2
    vocab: int = 8000
    word_vectors: str | None = None
    steps: int | None = None
    epochs: float | None = None
    batch: int = 64
    chunk: int = 0
    queue: int = 0
    momentum: float = 0.999
    temperature: float | None = None
    lr: float | None = None
    warmup: float = 0.1
    schedule: str = "linear"
    weight_decay: float = 0.0
    clip: float = 1.0
    dropout: float = 0.1
    masks: str = "independent"
    max_length: int | None = None
    pooling: str = "mean"
    head: bool = False
    log_weight: float = 0.0
    mlm_weight: float = 0.0
    held_out: int = 1300
    eval_every: int = 100
    seed: int = 0
    threads: int | None = None
    device: str = "cpu"

    def __post_init__(self):
        for name, allowed in CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in allowed:
                raise InputError(f"{name} {value!r} is not one of {', '.join(allowed)}{nearest(value, allowed)}")
        for name, (test, expected) in RANGES.items():
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool | np.bool) or not isinstance(value, numbers.Real):
                raise InputError(f"{name} is {value!r}, a {type(value).__name__}; expected a number, {expected}")
            if abs(value) > LARGEST and value not in (math.inf, -math.inf):
                raise InputError(f"{name} is beyond 2^63 in size; expected {expected}")
            if not math.isfinite(value) or not test(value):
                raise InputError(f"{name} is {value}; expected {expected}")
            if name in INTEGERS:
                if value != int(value):
                    raise InputError(f"{name} is {value}; expected a whole number")
                value = int(value)
            object.__setattr__(self, name, value if isinstance(value, int) else float(value))
        if self.init is not None and not isinstance(self.init, str):
            raise InputError(f"init is {self.init!r}; expected a model's folder, package:NAME or hub id")
        if self.init is not None and self.word_vectors is not None:
            raise InputError(f"word_vectors is {self.word_vectors}, but with init they are the checkpoint's")
        if not isinstance(self.device, str):
            raise InputError(f"device is {self.device!r}; expected cpu, cuda or cuda:i")
        if not isinstance(self.head, bool):
            raise InputError(f"head is {self.head!r}; expected true or false")
        if 0 < self.chunk < self.batch and self.mlm_weight:
            raise InputError(f"chunk is {self.chunk} beside mlm_weight {self.mlm_weight}; expected one of them to be 0")
        if self.width % self.heads:
            raise InputError(f"width {self.width} is not divisible by heads {self.heads}")


CHOICES = {"positives": POSITIVES, "word_vectors": WORD_VECTORS, "masks": MODES, "pooling": POOLINGS,
           "schedule": SCHEDULES}  # fmt: skip
INTEGERS = ("layers", "width", "heads", "vocab", "steps", "batch", "chunk", "queue", "max_length",
            "held_out", "eval_every", "seed", "threads")  # fmt: skip
LARGEST = 2**63  # what any option may be
RANGES = {
    "layers": (lambda x: x >= 1, "at least 1"),
    "width": (lambda x: x >= 1, "at least 1"),
    "heads": (lambda x: x >= 1, "at least 1"),
    "vocab": (lambda x: 100 <= x <= 2**24, "100 to 2^24 tokens"),
    "steps": (lambda x: x >= 1, "at least 1"),
    "epochs": (lambda x: x > 0, "a number above 0"),
    "batch": (lambda x: x >= 2, "at least 2, because a row needs a negative"),
    "chunk": (lambda x: x >= 0, "at least 0"),
    "queue": (lambda x: x >= 0, "at least 0"),
    "momentum": (lambda x: 0 <= x < 1, "a number in [0, 1)"),
    "temperature": (lambda x: x >= 1e-38, "a finite number above 0 (at least 1e-38)"),
    "lr": (lambda x: x > 0, "a finite number above 0"),
    "warmup": (lambda x: 0 <= x < 1, "a share of the steps in [0, 1)"),
    "weight_decay": (lambda x: x >= 0, "at least 0"),
    "clip": (lambda x: 0 < x <= 1e18, "a number above 0, at most 1e18, which clips nothing"),
    "dropout": (lambda x: 0 <= x < 1, "a rate in [0, 1)"),
    "max_length": (lambda x: 3 <= x <= 65536, "3 to 65536 tokens"),
    "log_weight": (lambda x: True, "a finite number"),
    "mlm_weight": (lambda x: x >= 0, "at least 0"),
    "held_out": (lambda x: x >= 0, "at least 0"),
    "eval_every": (lambda x: x >= 1, "at least 1"),
    "seed": (lambda x: x >= 0, "at least 0"),
    "threads": (lambda x: 1 <= x <= 1024, "1 to 1024"),
}


def nearest(value, allowed):
    """"; did you mean ...?" where one of the allowed words is close to `value`, else nothing."""
    close = difflib.get_close_matches(str(value), list(allowed), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def read_config(path):
    """Options from a .toml or .json file as a dict, named as in TrainingConfig or as on the command line. Raises
    InputError for a file that cannot be read as such, or an option that does not exist, with the nearest name."""
    path = Path(path).expanduser()
    kind = path.suffix.lower()[1:]
    if kind not in ("toml", "json"):
        raise InputError(f"config file {str(path)!r} must end in .toml or .json")
    try:
        text = path.read_text(encoding="utf-8")
        options = tomllib.loads(text) if kind == "toml" else json.loads(text)
    except OSError as error:
        raise InputError(f"config file {str(path)!r} cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise InputError(f"config file {str(path)!r} is not valid {kind.upper()} ({error})") from None
    if not isinstance(options, dict):
        raise InputError(f"config file {str(path)!r} must hold a table of options")
    options = {name.replace("-", "_"): value for name, value in options.items()}
    for name in ("files", "dev", "out", "resume", "overwrite"):
        if name in options:
            raise InputError(f"config file {str(path)!r} sets {name}, which belongs on the command line")
    check_names(options)
    return options


def check_names(options):
    """Raise InputError for the first option that TrainingConfig does not have."""
    known = [field.name for field in fields(TrainingConfig)]
    for name in options:
        if name not in known:
            raise InputError(f"option {name!r} does not exist{nearest(name, known)}")
