"""nano-simcse encode and evaluate."""

import os
from collections import Counter
from pathlib import Path

import numpy as np

from ..data.readers import read_sts
from ..errors import InputError
from ..evaluation import evaluate_sts
from ..files import atomic_write
from ..training.report import as_table
from .common import json_line, load_model, one_a_line


def encode(arguments):
    """nano-simcse encode."""
    out = os.path.expanduser(arguments.out)
    if Path(out).suffix != ".npy":
        raise InputError(f"--out is {arguments.out!r}; expected a name that ends in .npy")
    encoder = load_model(arguments)
    sentences = one_a_line(arguments.file)
    x = encoder.encode(
        sentences,
        batch_size=arguments.batch_size,
        normalize_embeddings=arguments.normalize,
        max_length=arguments.max_length,
    )
    try:
        with atomic_write(out) as temporary:
            np.save(temporary, x, allow_pickle=False)
    except OSError as error:
        if error.errno is not None:
            raise
        # NumPy counts the bytes that arrived and gives no reason.
        raise InputError(f"cannot write {out}: the disk is full or the write was cut short") from None
    print(f"{len(x):,} embeddings of {x.shape[1]} numbers in {out}")


def evaluate(arguments):
    """nano-simcse evaluate."""
    files = {file: read_sts(file) for file in arguments.files}
    encoder = load_model(arguments).with_reading(arguments.pooling, arguments.max_length)
    uses = Counter(Path(file).name for file in files)
    reports, rows = {}, []
    for file, pairs in files.items():
        report = reports[file] = evaluate_sts(encoder, pairs)
        name = Path(file).name if uses[Path(file).name] == 1 else file
        for protocol in ("all", "mean", "wmean"):
            if protocol in report:
                rows.append((f"{name} {protocol}", report[protocol]))
    print(as_table(rows, ["spearman", "pearson"]))
    print("correlation x 100 of cosine with the given scores; compare with 'all' unless a paper says otherwise")
    if arguments.json:
        print(json_line(reports))
