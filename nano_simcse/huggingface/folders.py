"""A whole folder, in and out."""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..backend import to_host
from ..checkpoint import read_json, write_json
from ..data.tokenizer import Tokenizer
from ..encoder import EncoderConfig, parameter_shapes
from ..errors import CheckpointError
from ..files import new_folder
from ..parameters import Parameters
from ..transforms import Transform
from . import bert
from .dense import read_head, read_transform
from .reading import MODULES, read_reading, write_reading

LONGEST = 512  # tokens of a row where neither the folder nor its tokenizer states a limit


@dataclass(frozen=True)
class Contents:
    """What a folder describes, in our terms: the arguments of SentenceEncoder."""

    params: Parameters
    config: EncoderConfig
    tokenizer: Tokenizer
    pooling: str
    max_length: int
    normalize: bool
    transform: Transform | None = None


def is_foreign(folder):
    """Whether a folder looks like one of transformers or sentence-transformers."""
    folder = Path(folder)
    if (folder / MODULES).is_file():
        return True
    if not (folder / "config.json").is_file():
        return False
    values = read_json(folder / "config.json")
    return isinstance(values, dict) and "format" not in values and ("model_type" in values or "hidden_size" in values)


def import_folder(folder):
    """Contents of a BERT folder: config.json, model.safetensors, tokenizer.json or vocab.txt, and, where there is a
    modules.json, the pooling, length, head, linear map and normalisation of sentence-transformers.

    A stored pooler becomes the tanh head; it is read by "cls" and not by "cls_before_pooler". Raises CheckpointError
    for whatever cannot be taken over exactly, naming it.
    """
    reading = read_reading(folder)
    place = reading.transformer
    values = read_json(place / "config.json")
    if not isinstance(values, dict):
        raise CheckpointError(f"{place / 'config.json'} is not a JSON object; expected the settings of a BERT model")
    config = bert.read_config(values, place / "config.json")
    config, params = bert.read_weights(bert.require_readable(place), config)
    if reading.head is not None:
        config, params = _with_head(config, params, reading.head)
    tokenizer = Tokenizer.load(place)
    if tokenizer.vocab_size > config.vocab_size:
        raise CheckpointError(
            f"{place} has a vocabulary of {tokenizer.vocab_size} tokens, its weights one of {config.vocab_size}"
        )
    if reading.lowercase and tokenizer.encode(["A"], 3)[0][0].tolist() != tokenizer.encode(["a"], 3)[0][0].tolist():
        raise CheckpointError(f"{folder}: do_lower_case before a tokenizer that keeps case is not supported")
    length = min(reading.max_length or _tokenizer_length(place), config.max_positions)
    transform = reading.transform and read_transform(reading.transform, config.width)
    return Contents(params, config, tokenizer, reading.pooling, length, reading.normalize, transform)


def _tokenizer_length(folder):
    path = folder / "tokenizer_config.json"
    length = read_json(path).get("model_max_length") if path.is_file() else None
    # "no limit" is written as 1e30
    return length if isinstance(length, int) and 3 <= length <= 10**6 else LONGEST


def _with_head(config, params, folder):
    """The Dense module's weights as the head, in place of a stored pooler, which the folder does not read."""
    arrays = read_head(folder)
    with_head = replace(config, head=True)
    shapes = parameter_shapes(with_head)
    for name, array in arrays.items():
        if array.shape != shapes[name]:
            raise CheckpointError(f"{folder}: the Dense module has shape {array.shape}; expected {shapes[name]}")
    if config.head and not all(np.array_equal(params[name], array) for name, array in arrays.items()):
        warnings.warn(f"pooler.dense is stored but not read: the head is {folder.name}, which differs", stacklevel=4)
    filled = Parameters(shapes)
    for name, view in filled.items():
        view[...] = arrays[name] if name in arrays else params[name]
    return with_head, filled


def export_folder(encoder, folder):
    """Write `encoder` as a folder for sentence_transformers.SentenceTransformer and transformers.AutoModel.

    encoder: a SentenceEncoder, trained here or imported. folder: new or empty; it appears whole or not at all.
    Embeddings are the same up to rounding. The head is written as BERT's pooler and, where the reading goes through
    it ("cls"), as a Dense module too; a transform is a Dense module without activation. Raises InputError where the
    folder is in use.
    """
    with new_folder(folder) as made:
        _write(encoder, made)


def _write(encoder, folder):
    config = encoder.config
    through_head = encoder.pooling == "cls" and config.head
    head = {n: to_host(encoder.params[n]) for n in ("head.weight", "head.bias")} if through_head else None
    two_states = encoder.pooling.startswith("avg")
    encoder.tokenizer.save(folder)
    write_json(folder / "tokenizer_config.json", bert.tokenizer_values(config))
    write_json(folder / "config.json", bert.config_values(config, encoder.tokenizer.pad_id, two_states))
    bert.write_weights(folder / "model.safetensors", config, encoder.params)
    write_reading(folder, config, encoder.pooling, encoder.max_length, encoder.normalize, head, encoder.transform)
