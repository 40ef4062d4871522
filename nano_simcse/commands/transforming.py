"""nano-simcse whiten: a centring or whitening fitted to the embeddings of a text, and a model that applies it."""

import os

from ..data.readers import read_texts
from ..files import new_folder, require_unused
from ..transforms import VERBS, too_few, with_fitted_transform
from .common import json_line, load_model


def whiten(arguments):
    """nano-simcse whiten."""
    out = os.path.expanduser(arguments.out)
    require_unused(out)
    sentences = read_texts(arguments.file)
    encoder = load_model(arguments).with_transform(None).with_reading(arguments.pooling, arguments.max_length)
    with new_folder(out) as made:  # before the work, so that a place where it cannot be is found out now
        fitted = with_fitted_transform(encoder, sentences, arguments.kind, arguments.rank)
        fitted.save(made)
    print(f"{out}: {fitted.pooling} embeddings, {VERBS[arguments.kind]} {encoder.dimension} -> {fitted.dimension} "
          f"numbers, fitted to {len(sentences):,} sentences")  # fmt: skip
    if few := too_few(arguments.kind, len(sentences), encoder.dimension):
        print(few)
    if arguments.json:
        print(json_line({"out": out, "kind": arguments.kind, "pooling": fitted.pooling, "sentences": len(sentences),
                         "inputs": encoder.dimension, "outputs": fitted.dimension,
                         "fingerprint": fitted.fingerprint()}))  # fmt: skip
