"""SentenceEncoder: text in, one vector a sentence out."""

import hashlib
import os
import sys
import warnings
from dataclasses import asdict
from pathlib import Path

import numpy as np
from tqdm import tqdm

from .backend import keep_freed_memory, length_multiple, resolve_device, to_device, to_host
from .checkpoint import (
    load_parameters,
    load_transform,
    read_description,
    require_finite,
    save_parameters,
    save_transform,
    write_json,
)
from .data.batches import pack
from .data.records import expanded
from .data.tokenizer import Tokenizer
from .encoder import encoder_forward, init_parameters, parameter_shapes
from .errors import CheckpointError, DeviceError, InputError
from .files import staged
from .huggingface import export_folder, find_folder, import_folder, is_foreign
from .inputs import listed, number_rows, require_count, require_length, unit_rows
from .layers import POOLINGS, normalize, pool, tanh_head
from .parallel import Workers, available_cores, split_by_tokens
from .parameters import Parameters, accumulate

FORMAT = "nano_simcse sentence encoder 1"
MODEL_FILES = ("tokenizer.json", "vocab.txt", "transform.safetensors", "model.safetensors", "config.json")


def embed(params, config, batch, pooling, dropout=None, training=False, grad=None):
    """One vector a row, (B, D), and its backward: encoder, pooling and, where it applies, the tanh head.

    The head stands on the pooled row while training, whatever the pooling, if the model has one; in use only
    "cls" goes through it. grad: whether a backward is wanted; None: while training. backward(dz, gradients) adds to
    the gradient buffer.
    """
    grad = training if grad is None else grad
    first_only = pooling.startswith("cls")
    hidden, encoder_back = encoder_forward(params, config, batch, dropout, grad, first_only)
    pooled, pool_back = (hidden[-1], lambda d: d) if first_only else pool(hidden, batch, pooling)
    with_head = config.head and (training or pooling == "cls")
    z, head_back = tanh_head(pooled, params["head.weight"], params["head.bias"]) if with_head else (pooled, None)

    def backward(dz, gradients):
        if with_head:
            dz, dweight, dbias = head_back(dz)
            accumulate(gradients, "head", ("weight", "bias"), dweight, dbias)
        encoder_back(pool_back(dz), into=gradients)

    return z, backward if grad else None


class SentenceEncoder:
    """A tokenizer, an encoder and the reading that turns token vectors into a sentence vector: a pooling, perhaps a
    fitted transform of the pooled row (centring, whitening), perhaps scaling to length 1.

    >>> encoder = SentenceEncoder.load("runs/001-dropout")        # doctest: +SKIP
    >>> encoder.encode(["a sentence", "another one"]).shape       # doctest: +SKIP
    (2, 128)
    """

    def __init__(
        self, params, config, tokenizer, pooling="mean", max_length=64, device="cpu", normalize=False, transform=None
    ):
        """params: Parameters of parameter_shapes(config), on `device`; pooling: one of POOLINGS; max_length: longest
        row in tokens, [CLS] and [SEP] included; normalize: whether every embedding is scaled to length 1; transform:
        a Transform of width D fitted to embeddings of this pooling, or None. Raises InputError where they do not fit
        together: other parameters than the config's, more tokens than it has vectors for, another width."""
        if pooling not in POOLINGS:
            raise InputError(f"pooling {pooling!r} is not one of {', '.join(POOLINGS)}")
        require_length(max_length, config.max_positions)
        require_matching(params, config, tokenizer)
        if transform is not None and transform.inputs != config.width:
            raise InputError(f"the transform takes rows of width {transform.inputs}, the encoder's are {config.width}")
        self.params, self.config, self.tokenizer, self.transform = params, config, tokenizer, transform
        self.pooling, self.max_length, self.device, self.normalize = pooling, max_length, device, normalize
        self.truncated = 0
        self._warned = False

    @property
    def dimension(self):
        """Length of an embedding: the encoder's width D, or what the transform makes of it."""
        return self.config.width if self.transform is None else self.transform.outputs

    def encode(
        self, sentences, batch_size=64, show_progress_bar=None, normalize_embeddings=False, max_length=None
    ):
        """Embeddings of sentences: float32 (n, D), or (D,) for a single string.

        sentences: a string or a list of strings; batch_size: rows encoded at once (memory, not results: they do not
        depend on it beyond rounding); show_progress_bar: None shows one on a terminal when it takes over two seconds;
        normalize_embeddings: scale rows to length 1, which a model that says so does anyway; max_length: tokens kept
        of each sentence, at most the model's positions. Longer sentences are cut; the number so far is `truncated`,
        and a warning says so once.
        Raises InputError for anything that is not a string, a batch size below 1, and sizes that are not whole numbers.
        """
        single = isinstance(sentences, str)
        texts = [sentences] if single else listed(sentences, "a string or a list of strings")
        rows = self._tokenize(texts, batch_size, max_length)
        embeddings = np.empty((len(rows), self.dimension), np.float32)
        lengths = np.array([len(row) for row in rows], int)
        order = np.argsort(-lengths, kind="stable")  # longest first: memory peaks at once
        batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
        hide = not sys.stderr.isatty() if show_progress_bar is None else not show_progress_bar
        keep_freed_memory()
        with (
            Workers(available_cores() if self.device == "cpu" else 1) as workers,
            tqdm(total=len(rows), desc="encode", unit="sentence", disable=hide, delay=2, leave=False) as bar,
        ):
            for members in batches:
                parts = split_by_tokens(lengths, members.tolist(), workers.count)
                for part, z in zip(parts, workers.map(lambda p: self._encode_rows(rows, p), parts), strict=True):
                    embeddings[part] = z
                bar.update(len(members))
        if (normalize_embeddings or self.normalize) and len(rows):
            embeddings = normalize(embeddings)[0]
        return embeddings[0] if single else embeddings

    def similarity(self, a, b):
        """Cosine of every row of a (n, D) with every row of b (m, D): (n, m), in float64 where a row is, or integers,
        else in float32. One vector (D,) counts as one row.

        Raises InputError for anything but finite numbers, for two widths, and for a zero row.
        """
        a, b = number_rows("a", a), number_rows("b", b)
        if a.shape[1] != b.shape[1]:
            raise InputError(f"rows of a are {a.shape[1]} wide and rows of b {b.shape[1]}; expected one width")
        return unit_rows(a, "a") @ unit_rows(b, "b").T

    def save(self, path):
        """Write config.json, model.safetensors, the tokenizer's files and, where there is a transform,
        transform.safetensors to the folder `path`: all of them in the place of a model that lay there, or none."""
        with staged(expanded(path), MODEL_FILES) as made:
            save_parameters(made / "model.safetensors", self.params)
            self.save_description(made)

    def save_description(self, path):
        """Everything but the parameters: config.json, the tokenizer's files and the transform."""
        path = expanded(path)
        self.tokenizer.save(path)
        description = {
            "format": FORMAT,
            "encoder": asdict(self.config),
            "pooling": self.pooling,
            "max_length": self.max_length,
            "normalize": self.normalize,
        }
        if self.transform is not None:
            save_transform(path / "transform.safetensors", self.transform)
            description["transform"] = self.transform.kind
        write_json(path / "config.json", description)

    def export(self, path):
        """Write a folder that sentence_transformers.SentenceTransformer and transformers.AutoModel load."""
        export_folder(self, expanded(path))

    @classmethod
    def load(cls, path, device="cpu"):
        """The encoder that `path` names: a folder written by `save` or by a training run (its best checkpoint), a
        BERT folder of transformers or sentence-transformers, "package:NAME" for one inside an installed Python
        package, or an id of the Hugging Face hub, "owner/name".

        Raises CheckpointError for a folder that is missing, damaged, or holds anything this encoder does not have,
        InputError for an id that cannot be fetched, and DeviceError for a device that does not work.
        """
        if not isinstance(device, str):
            raise DeviceError(f"device is {device!r:.60}, a {type(device).__name__}; expected cpu, cuda or cuda:i")
        found = os.path.expanduser(path) if isinstance(path, str | os.PathLike) else path
        path = find_folder(Path(found) if isinstance(path, Path) else found)
        if not path.is_dir():
            raise CheckpointError(f"model folder {str(path)!r} {'is a file' if path.exists() else 'does not exist'}")
        if is_foreign(path):
            device, found = resolve_device(device), import_folder(path)
            require_finite(path, found.params)
            params = Parameters(found.params.shapes, to_device(found.params.flat, device))
            reading = found.pooling, found.max_length, device, found.normalize, found.transform
            return cls(params, found.config, found.tokenizer, *reading)
        config, reading = read_description(path / "config.json", FORMAT)
        if kind := reading.pop("transform", None):
            reading["transform"] = load_transform(path / "transform.safetensors", kind, config.width)
        device = resolve_device(device)
        params = load_parameters(path / "model.safetensors", parameter_shapes(config), device)
        tokenizer = Tokenizer.load(path)
        listed = not (path / "tokenizer.json").is_file()  # vocab.txt alone: cut short, it would lose words unseen
        if tokenizer.vocab_size > config.vocab_size or (listed and tokenizer.vocab_size != config.vocab_size):
            raise CheckpointError(
                f"{path} has a vocabulary of {tokenizer.vocab_size} tokens, its encoder one of {config.vocab_size}"
            )
        return cls(params, config, tokenizer, device=device, **reading)

    def fingerprint(self):
        """Hex digest of everything an embedding depends on: two encoders with equal fingerprints agree."""
        digest = hashlib.sha256(repr((asdict(self.config), self.pooling, self.max_length, self.normalize)).encode())
        digest.update(np.ascontiguousarray(to_host(self.params.flat)).tobytes())
        if self.transform is not None:
            digest.update(self.transform.tobytes())
        digest.update(self.tokenizer.tobytes())
        return digest.hexdigest()[:16]

    def with_parameters(self, params):
        """The same encoder around other parameters, for example those of a training step; without a transform, which
        was fitted to embeddings of the old ones."""
        return self._like(params=params, transform=None)

    def with_reading(self, pooling=None, max_length=None, normalize=None):
        """The same parameters, read in another way; None keeps what there is, a transform among it. Raises as the
        constructor does, and InputError for another pooling of an encoder with a transform, which belongs to one."""
        asked = {"pooling": pooling, "max_length": max_length, "normalize": normalize}
        if self.transform is not None and pooling not in (None, self.pooling):
            raise InputError(
                f"pooling {pooling!r:.60} does not go with the model's transform ({self.transform.kind}), which was "
                f"fitted to {self.pooling!r} embeddings; use the model without it, or fit one to {pooling!r:.60}"
            )
        return self._like(**{name: value for name, value in asked.items() if value is not None})

    def with_transform(self, transform):
        """The same encoder with another Transform after its pooling, or with none. Raises as the constructor does."""
        return self._like(transform=transform)

    def _like(self, **changes):
        same = ("params", "config", "tokenizer", "pooling", "max_length", "device", "normalize", "transform")
        return SentenceEncoder(**{name: getattr(self, name) for name in same} | changes)

    def _tokenize(self, texts, batch_size, max_length):
        require_count("batch_size", batch_size)
        limit = self.max_length if max_length is None else max_length
        require_length(limit, self.config.max_positions)
        rows, cut = self.tokenizer.encode(texts, limit)
        self.truncated += cut
        if cut and not self._warned:
            warnings.warn(f"{cut} of {len(texts)} sentences were cut to {limit} tokens", stacklevel=3)
            self._warned = True
        return rows

    def _encode_rows(self, rows, members):
        grouping = {"multiple": length_multiple(self.device), "longest": self.config.max_positions}
        batch = pack([rows[i] for i in members], **grouping).to(self.device)
        z = to_host(embed(self.params, self.config, batch, self.pooling)[0])
        return z if self.transform is None else self.transform(z)


def require_matching(params, config, tokenizer):
    """Raise InputError, naming the first difference, unless `params` has the shapes that `config` asks for, and every
    token of `tokenizer` a word vector."""
    expected = parameter_shapes(config)
    for name in [*expected, *params.shapes]:
        found, asked = params.shapes.get(name), expected.get(name)
        if found != asked:
            raise InputError(f"params has {name} of shape {found}; expected {asked}, as the config says")
    if tokenizer.vocab_size > config.vocab_size:
        raise InputError(f"the tokenizer has {tokenizer.vocab_size} tokens, the config vectors for {config.vocab_size}")


def new_encoder(config, tokenizer, pooling, max_length, seed, device="cpu"):
    """An untrained SentenceEncoder, its parameters drawn from `seed`."""
    params = init_parameters(config, seed)
    params = Parameters(params.shapes, to_device(params.flat, device))
    return SentenceEncoder(params, config, tokenizer, pooling, max_length, device)
