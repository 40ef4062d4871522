"""How a sentence-transformers folder reads its BERT, and how ours is said in those terms.

modules.json lists the steps. Ours, in theirs:

    cls_before_pooler   Transformer, Pooling(cls)
    cls                 Transformer, Pooling(cls), Dense(tanh): the Dense holds the head's weights
    mean                Transformer, Pooling(mean)
    avg_first_last      Transformer, WeightedLayerPooling(1, 0, ..., 0, 1), Pooling(mean)
    avg_top2            Transformer, WeightedLayerPooling(0, ..., 0, 1, 1), Pooling(mean)

then Dense(identity) where a fitted transform follows (dense.py), and Normalize at the end where embeddings have length
1. Every pooling is expressed exactly: a weighted layer pooling divides by the sum of its weights, which is the average
of two states. Any other step is refused by name.

A plain BERT folder has no modules.json; it is read by the mean over tokens, as sentence-transformers does.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..checkpoint import open_safetensors, read_json, write_json
from ..errors import CheckpointError
from ..layers.pooling import states_read
from .bert import save_arrays
from .dense import head_module, is_linear, require_head, transform_module

MODULES = "modules.json"
LENGTH = "sentence_bert_config.json"
PROMPTS = "config_sentence_transformers.json"
TYPES = "sentence_transformers.models."
POOLING_FLAGS = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}


@dataclass(frozen=True)
class Reading:
    """transformer: folder of the BERT; pooling: one of layers.POOLINGS; max_length: tokens, or None where not stated;
    normalize: whether embeddings have length 1; head, transform: folders of the Dense modules that hold them, or None;
    lowercase: whether text is lower-cased before the tokenizer."""

    transformer: Path
    pooling: str = "mean"
    max_length: int | None = None
    normalize: bool = False
    head: Path | None = None
    transform: Path | None = None
    lowercase: bool = False


def read_reading(folder):
    """The Reading of a folder. Raises CheckpointError for a step or a setting that cannot be followed exactly."""
    folder = Path(folder)
    if not (folder / MODULES).is_file():
        return Reading(folder)
    modules = read_json(folder / MODULES)
    try:
        steps = [(module["type"].rsplit(".", 1)[-1], folder / module["path"]) for module in modules]
    except (TypeError, KeyError, AttributeError):
        raise CheckpointError(f"{folder / MODULES} is not a list of modules with type and path") from None
    _refuse_prompts(folder / PROMPTS)
    left = list(steps)

    def take(kind):
        return left.pop(0)[1] if left and left[0][0] == kind else None

    transformer, layers, pool = take("Transformer"), take("WeightedLayerPooling"), take("Pooling")
    head = take("Dense")
    transform, head = (head, None) if head is not None and is_linear(head) else (take("Dense"), head)
    normalize = take("Normalize")
    if transformer is None or pool is None or left:
        found = ", ".join(kind for kind, _ in steps) or "no module"
        raise CheckpointError(
            f"{folder / MODULES} lists {found}; expected Transformer, perhaps WeightedLayerPooling, Pooling, and "
            "perhaps Dense (tanh, then identity) and Normalize, in this order"
        )
    pooling = _pooling(pool / "config.json")
    if layers is not None:
        pooling = _layer_pooling(layers, pooling)
    if head is not None:
        require_head(head, pooling == "cls_before_pooler")
        pooling = "cls"
    length, lowercase = _length(transformer / LENGTH)
    return Reading(transformer, pooling, length, normalize is not None, head, transform, lowercase)


def _refuse_prompts(path):
    if not path.is_file():
        return
    values = read_json(path)
    name = values.get("default_prompt_name") if isinstance(values, dict) else None
    if name and (values.get("prompts") or {}).get(name):
        raise CheckpointError(f"{path}: the default prompt {name!r} is not supported; expected none")


def _pooling(path):
    values = read_json(path)
    modes = values.get("pooling_mode")
    if modes is None:
        flags = [name for name, on in values.items() if name.startswith("pooling_mode_") and on]
        modes = [POOLING_FLAGS.get(name, name) for name in flags]
    modes = [modes] if isinstance(modes, str) else list(modes)
    if modes not in (["cls"], ["mean"]):
        raise CheckpointError(f"{path}: pooling {', '.join(modes) or 'none'} is not supported; expected cls or mean")
    if not values.get("include_prompt", True):
        raise CheckpointError(f"{path}: include_prompt False is not supported; expected True")
    return "cls_before_pooler" if modes == ["cls"] else "mean"


def _layer_pooling(folder, pooling):
    start = read_json(folder / "config.json").get("layer_start", 4)
    with open_safetensors(folder / "model.safetensors") as file:
        stored = file.get_tensor("layer_weights") if list(file.keys()) == ["layer_weights"] else np.zeros(0)
    weights = np.concatenate([np.zeros(start), stored])
    for name in ("avg_first_last", "avg_top2"):
        if pooling == "mean" and len(weights) > 1 and np.array_equal(weights, _layer_weights(name, len(weights))):
            return name
    raise CheckpointError(
        f"{folder} weighs the layers {weights.tolist()} before {pooling} pooling; expected equal weights of the first "
        "and the last or of the last two states, and mean pooling"
    )


def _layer_weights(pooling, count):
    weights = np.zeros(count, np.float32)
    weights[list(states_read(pooling, count))] = 1
    return weights


def _length(path):
    if not path.is_file():
        return None, False
    values = read_json(path)
    length, task = values.get("max_seq_length"), values.get("transformer_task", "feature-extraction")
    if length is not None and (not isinstance(length, int) or isinstance(length, bool)):
        raise CheckpointError(f"{path}: max_seq_length is {length!r}; expected a whole number")
    if task != "feature-extraction":
        raise CheckpointError(f"{path}: transformer_task {task!r} is not supported; expected 'feature-extraction'")
    return length, bool(values.get("do_lower_case", False))


def write_reading(folder, config, pooling, max_length, normalize, head, transform=None):
    """Write modules.json and the folders it names. head: the arrays of `read_head`, or None where not read; transform:
    a Transform, or None."""
    folder, steps = Path(folder), [("Transformer", "")]

    def add(kind, values=None, arrays=None):
        path = f"{len(steps)}_{kind}"
        steps.append((kind, path))
        if values is not None:
            write_json(folder / path / "config.json", values)
        if arrays is not None:
            save_arrays(folder / path / "model.safetensors", arrays)

    if len(states_read(pooling, config.layers + 1)) == 2:
        add(
            "WeightedLayerPooling",
            {"word_embedding_dimension": config.width, "num_hidden_layers": config.layers, "layer_start": 0},
            {"layer_weights": _layer_weights(pooling, config.layers + 1)},
        )
    cls = pooling.startswith("cls")
    flags = {name: cls == (mode == "cls") for name, mode in POOLING_FLAGS.items()}
    flags |= {"pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False}
    add("Pooling", {"word_embedding_dimension": config.width, **flags})
    if head is not None:
        add("Dense", *head_module(config.width, head))
    if transform is not None:
        add("Dense", *transform_module(transform))
    if normalize:
        add("Normalize")
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": TYPES + kind} for i, (kind, path) in enumerate(steps)
    ]
    write_json(folder / MODULES, modules)
    write_json(folder / LENGTH, {"max_seq_length": max_length, "do_lower_case": False})
    write_json(folder / PROMPTS, {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"})
