"""nano-simcse export, download and info: models and sets, out, in and looked at."""

import os
from contextlib import suppress
from dataclasses import asdict

from .. import downloads
from ..checkpoint import read_json
from ..files import require_unused
from ..huggingface import find_folder
from ..model import SentenceEncoder
from ..training.run_folder import newest_run
from .common import json_line
from .training import public


def export(arguments):
    """nano-simcse export."""
    require_unused(os.path.expanduser(arguments.to))  # before a model is loaded, and perhaps fetched
    encoder = SentenceEncoder.load(arguments.model)
    encoder.export(arguments.to)
    normalised = ", scaled to length 1" if encoder.normalize else ""
    fitted = encoder.transform
    fitted = f", {fitted.kind} transform {fitted.inputs} -> {fitted.outputs}" if fitted else ""
    print(f"{arguments.to}: {encoder.pooling} pooling{fitted}{normalised}, at most {encoder.max_length} tokens")


def download(arguments):
    """nano-simcse download."""
    for name in arguments.names:
        paths = downloads.download(name, arguments.to)
        for path in paths:
            print(path)
        use = "any command --model " + name
        if name in downloads.SETS:
            files = " ".join(str(path) for path in paths)
            use = downloads.SETS[name].use.format(files=files, folder=arguments.to)
        print(f"use it with: {use}")


def info(arguments):
    """nano-simcse info."""
    folder = find_folder(os.path.expanduser(arguments.model)) if arguments.model else newest_run()
    encoder = SentenceEncoder.load(folder)
    fitted = encoder.transform
    facts = {
        "folder": str(folder),
        **asdict(encoder.config),
        "pooling": encoder.pooling,
        "max_length": encoder.max_length,
        "normalize": encoder.normalize,
        "transform": fitted and f"{fitted.kind}, {fitted.inputs} -> {fitted.outputs}",
        "parameters": int(encoder.params.flat.size),
        "fingerprint": encoder.fingerprint(),
    }
    result = folder / "result.json"
    if result.exists():
        with suppress(KeyError, TypeError):  # not a report: the model can be looked at without one
            facts.update(public(read_json(result)))
    for name, value in facts.items():
        print(f"{name:16} {json_line(value) if isinstance(value, dict) else value}")
    if arguments.json:
        print(json_line(facts))
