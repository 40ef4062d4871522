"""nano-simcse whiten: a centring or whitening fitted to the embeddings of a text, and a model that applies it."""

import os

from ..data.readers import read_sentences
from ..files import new_folder, require_unused
from ..transforms import with_fitted_transform
from .common import json_line, load_model


def whiten(arguments):
    """nano-simcse whiten."""
    out = os.path.expanduser(arguments.out)
    require_unused(out)
    sentences = read_sentences(arguments.file)
    encoder = load_model(arguments).with_transform(None).with_reading(arguments.pooling, arguments.max_length)
    fitted = with_fitted_transform(encoder, sentences, arguments.kind, arguments.rank)
    with new_folder(out) as made:
        fitted.save(made)
    verb = {"whiten": "whitened", "centre": "centred"}[arguments.kind]
    print(f"{out}: {fitted.pooling} embeddings, {verb}, {encoder.dimension} -> {fitted.dimension} numbers, "
          f"fitted to {len(sentences):,} sentences")  # fmt: skip
    if arguments.json:
        print(json_line({"out": out, "kind": arguments.kind, "pooling": fitted.pooling, "sentences": len(sentences),
                         "inputs": encoder.dimension, "outputs": fitted.dimension,
                         "fingerprint": fitted.fingerprint()}))  # fmt: skip
