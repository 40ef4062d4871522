"""Files of a model and of a training run: safetensors for numbers, JSON for everything else.

A model is a table of named arrays, loaded only if every name and shape is the expected one: a parameter that is
missing is never filled with fresh random numbers, and one that is unexpected is never ignored. A training state is
the flat buffers themselves (parameters, optimiser moments), the number of steps done and the best of them. Every file
is written under another name and renamed, so a reader finds the old one or the new one.
"""

import json
import math
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from .architecture import EncoderConfig
from .backend import device_of, to_device, to_host
from .errors import CheckpointError, InputError
from .files import atomic_write
from .layers import POOLINGS
from .parameters import Parameters
from .transforms import Transform

PROGRESS = ("step", "best_step", "best_score")
KINDS = {int: "a whole number", float: "a finite number", bool: "true or false", str: "a string"}
READING = {"pooling": str, "max_length": int, "normalize": bool, "transform": str}  # in config.json, by the encoder


def save_parameters(path, params):
    """Write every named array of `params` to `path` (float32, as it is)."""
    with atomic_write(path) as temporary:
        # safetensors sorts by name; the file's bytes depend on the values alone.
        write_arrays(path, {name: np.ascontiguousarray(to_host(view)) for name, view in params.items()}, temporary)


def write_arrays(path, arrays, temporary, metadata=None):
    """Write name -> array to the safetensors file `temporary`, which is to become `path`; CheckpointError where it
    cannot be written."""
    try:
        save_file(arrays, temporary, metadata=metadata)
    except SafetensorError as error:  # safetensors' word for a full disk, among others
        raise CheckpointError(f"{path} could not be written ({error})") from None


def load_parameters(path, shapes, device="cpu"):
    """Parameters with exactly the given name -> shape table, read from `path`.

    Raises CheckpointError: no such file, not a safetensors file (truncated or foreign), or a table that differs,
    listing every missing, unexpected and misshapen name, or a number that is NaN or infinite.
    """
    with open_safetensors(path) as file:
        found = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}
        faults = [f"missing {name}" for name in shapes if name not in found]
        faults += [f"unexpected {name}" for name in found if name not in shapes]
        faults += [
            f"{name} has shape {found[name]}, expected {tuple(shape)}"
            for name, shape in shapes.items()
            if name in found and found[name] != tuple(shape)
        ]
        if faults:
            raise CheckpointError(f"{path} does not hold this model's parameters: {'; '.join(faults)}")
        params = Parameters(shapes)  # after the table is known to agree, because a damaged one may ask for terabytes
        for name, view in params.items():
            try:
                with np.errstate(over="ignore"):  # found below
                    view[...] = file.get_tensor(name)
            except (SafetensorError, TypeError, ValueError) as error:
                raise CheckpointError(f"{path}: {name} cannot be read as float32 ({error})") from None
    require_finite(path, params)
    return Parameters(shapes, to_device(params.flat, device))


def require_finite(path, params):
    """Raise CheckpointError, naming `path` and the tensor, where a parameter on the host is NaN or infinite."""
    for name, view in params.items():
        if not np.isfinite(view).all():
            raise CheckpointError(f"{path}: {name} holds NaN or infinity; expected finite numbers")


def _require_kinds(path, values, kinds):
    """Raise CheckpointError, naming `path` and the field, where a field of the dict `values` that `kinds` (name ->
    one of KINDS) lists is there and is of another kind. A whole number counts as a number; true and false do not."""
    for name, kind in kinds.items():
        value = values.get(name, kind())
        right = isinstance(value, int | float if kind is float else kind) and isinstance(value, bool) == (kind is bool)
        if not right or (kind is float and not math.isfinite(value)):
            raise CheckpointError(f"{path}: {name} is {json.dumps(value):.60}; expected {KINDS[kind]}")


def save_transform(path, transform):
    """Write the numbers of a Transform to `path`, in float64, as they are; its kind stands in config.json."""
    arrays = {"mean": transform.mean, "matrix": transform.matrix}
    with atomic_write(path) as temporary:
        write_arrays(path, {name: array for name, array in arrays.items() if array is not None}, temporary)


def load_transform(path, kind, width):
    """The Transform of rows of `width` numbers that `save_transform` wrote, and config.json calls `kind`.

    Raises CheckpointError where the file is missing, damaged, or does not hold such a transform.
    """
    with open_safetensors(path) as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}
    if "mean" not in arrays or not set(arrays) <= {"mean", "matrix"}:
        raise CheckpointError(f"{path} holds {sorted(arrays)}; expected mean and, for a kind that has one, matrix")
    if any(array.dtype != np.float64 for array in arrays.values()):
        raise CheckpointError(f"{path} holds numbers that are not float64; expected those of a fitted transform")
    try:
        transform = Transform(kind, **arrays)
    except InputError as error:
        raise CheckpointError(f"{path} does not hold a transform: {error}") from None
    if transform.inputs != width:
        raise CheckpointError(f"{path} takes rows of width {transform.inputs}; the encoder's are {width} wide")
    return transform


def save_state(path, buffers, progress):
    """Write a resumable training state: name -> Parameters in `buffers`, and PROGRESS, a dict: steps done, best step of
    them, its score or None."""
    with atomic_write(path) as temporary:
        arrays = {name: to_host(params.flat) for name, params in buffers.items()}
        write_arrays(path, arrays, temporary, {"progress": json.dumps(progress)})


def load_state(path, buffers):
    """Fill the Parameters of `buffers` (name -> Parameters) from `path`; returns the dict PROGRESS.

    Raises CheckpointError where the file is missing, damaged, or holds other buffers.
    """
    with open_safetensors(path) as file:
        found = set(file.keys())
        if found != set(buffers):
            raise CheckpointError(f"{path} holds {sorted(found)}, expected the buffers {sorted(buffers)}")
        for name, params in buffers.items():
            values = file.get_tensor(name)
            if values.shape != params.flat.shape:
                raise CheckpointError(f"{path}: {name} has {values.size} numbers, the model {params.flat.size}")
            params.flat[...] = to_device(values, device_of(params.flat))
        text = (file.metadata() or {}).get("progress", "null")
    with suppress(ValueError):
        progress = json.loads(text)
        if isinstance(progress, dict) and set(progress) == set(PROGRESS) and isinstance(progress["step"], int):
            return progress
    raise CheckpointError(
        f"{path} does not say after which step it was written, and which was the best; expected the state of a run, "
        "written by this version"
    )


def write_json(path, value):
    """Write `value` as indented JSON, whole or not at all."""
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path):
    """The value in a JSON file; CheckpointError where it is missing or not JSON."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{path} does not exist; expected a folder written by this package") from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read as JSON ({error})") from None


def read_description(file, form):
    """(EncoderConfig, {pooling, max_length, normalize} and, where there is one, the kind of the transform) from a
    config.json whose "format" is `form`.

    Raises CheckpointError, naming the file and the field, where one is missing, of another kind, or does not fit.
    """
    values = read_json(file)
    if not isinstance(values, dict) or values.get("format") != form:
        raise CheckpointError(f"{file} is not a description written by this version of the package")
    if not isinstance(values.get("encoder"), dict):
        raise CheckpointError(f"{file} does not describe an encoder; expected its sizes under the name encoder")
    _require_kinds(file, values["encoder"], {field.name: field.type for field in fields(EncoderConfig)})
    _require_kinds(file, values, READING)
    try:
        config = EncoderConfig(**values["encoder"])
        reading = {"normalize": False, **{name: values[name] for name in READING if name in values}}
        problem = _fault(config, reading["pooling"], reading["max_length"])
    except KeyError as error:
        problem = f"{error.args[0]} is missing"
    except (TypeError, ValueError) as error:
        problem = str(error)
    if problem:
        raise CheckpointError(f"{file} does not describe an encoder: {problem}")
    return config, reading


def _fault(config, pooling, max_length):
    """What keeps a configuration and its reading from working, in words, or None."""
    if config.gelu not in ("erf", "tanh"):
        return f"gelu is {config.gelu!r}; expected erf or tanh"
    if config.eps < 0:
        return f"eps is {config.eps}; expected at least 0"
    if pooling not in POOLINGS:
        return f"pooling {pooling!r} is not one of {', '.join(POOLINGS)}"
    if not 3 <= max_length <= config.max_positions:
        return f"max_length is {max_length}; expected 3 to {config.max_positions}, the model's positions"
    return None


def open_safetensors(path):
    """A safetensors file, open for reading names, shapes and arrays; CheckpointError where it is missing or damaged."""
    if not Path(path).is_file():
        raise CheckpointError(f"{path} does not exist; expected a safetensors file")
    try:
        return safe_open(path, framework="np")
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is not a complete safetensors file ({error})") from None
