"""The commands. Each parses, calls one function of the package, and prints; errors of input become one sentence.

Exit codes: 0 done, 2 unusable input or a loss that is not finite, 130 interrupted.
"""

import argparse
import importlib
import sys
import warnings
from dataclasses import fields

from .errors import InputError, NonFiniteLoss
from .layers import POOLINGS
from .ranks import speaker
from .studies import TOPICS
from .training.config import CHOICES, INTEGERS, TrainingConfig, nearest
from .transforms import FITTED


class Parser(argparse.ArgumentParser):
    """argparse, with the nearest suggestion for a mistyped choice or command."""

    def _check_value(self, action, value):
        if action.choices is not None and value not in action.choices:
            name = "command" if action.dest == "command" else "/".join(action.option_strings)
            allowed = ", ".join(map(str, action.choices))
            raise argparse.ArgumentError(
                None, f"{name} {value!r} is not one of {allowed}{nearest(value, action.choices)}"
            )

    def error(self, message):
        self.exit(2, f"{speaker()}{self.prog}: {message}\n")


def parser():
    """The argument parser of all commands."""
    top = Parser(
        prog="nano-simcse",
        description="Sentence embeddings from dropout, by hand in NumPy.",
        epilog="example: nano-simcse train && nano-simcse search 'singular value decomposition of a matrix'",
    )
    commands_ = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    for name, (summary, example, add_arguments) in COMMANDS.items():
        sub = commands_.add_parser(
            name, help=summary, description=summary, epilog=f"example: {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
        )  # fmt: skip
        add_arguments(sub)
    return top


def _train_arguments(sub):
    sub.add_argument("files", metavar="FILE", nargs="*", help="text, one sentence a line (also .gz), or .tsv .csv "
                     ".jsonl of pairs or triples; none: the docstrings of the installed scientific stack")  # fmt: skip
    sub.add_argument("--config", metavar="FILE", help="options from a .toml or .json file; the command line wins")
    default = TrainingConfig()
    for field in fields(TrainingConfig):
        name, value = "--" + field.name.replace("_", "-"), getattr(default, field.name)
        shown = "none" if field.name == "init" else "chosen from the positives" if value is None else value
        options = {"dest": field.name, "default": argparse.SUPPRESS, "help": f"{HELP[field.name]} (default {shown})"}
        if field.name == "head":
            sub.add_argument(name, action=argparse.BooleanOptionalAction, **options)
        elif field.name in CHOICES:
            sub.add_argument(name, choices=CHOICES[field.name], metavar="|".join(CHOICES[field.name]), **options)
        elif field.name in TEXTS:
            sub.add_argument(name, metavar=TEXTS[field.name], **options)
        else:
            kind = int if field.name in INTEGERS else float
            sub.add_argument(name, type=_number(kind), metavar="N" if kind is int else "X", **options)
    sub.add_argument("--dev", metavar="FILE", help="STS file to choose the best checkpoint by and to report on")
    sub.add_argument("--out", metavar="DIR", help="run folder (default runs/NNN-positives)")
    sub.add_argument("--resume", action="store_true", help="go on with the run in --out")
    sub.add_argument("--overwrite", action="store_true", help="replace the run in --out")
    sub.add_argument("--compare", action="store_true", help="train once for every kind of positives, side by side")
    _json_argument(sub)


def _study_arguments(sub):
    sub.add_argument("topic", metavar="TOPIC", help=f"{', '.join(TOPICS)}; with --config, a name for the results")
    sub.add_argument("files", metavar="FILE", nargs="*", help="as for train; none: the docstrings")
    sub.add_argument("--config", metavar="FILE", help="a .toml with arms and orderings of your own")
    sub.add_argument("--dev", metavar="FILE", help="STS file to score by (default: recall@1 on held-out pairs)")
    sub.add_argument("--init", metavar="MODEL", help="model every arm goes on from: folder, package:NAME or hub id")
    sub.add_argument("--seeds", metavar="0,1,2", help="instead of the plan's")
    sub.add_argument("--steps", type=_number(int), metavar="N", help="steps of an arm, instead of the plan's")
    sub.add_argument("--arms", metavar="A,B", help="names of the arms to run (default all)")
    sub.add_argument("--out", metavar="DIR", help="folder of the study (default studies/TOPIC); what it holds is kept")
    sub.add_argument("--threads", type=_number(int), metavar="N", help=HELP["threads"])
    sub.add_argument("--keep-models", action="store_true", help="keep the checkpoints of runs that are done")
    _json_argument(sub)


def _encode_arguments(sub):
    sub.add_argument("file", metavar="FILE", help="one sentence a line, also .gz; - reads standard input")
    sub.add_argument("--out", required=True, metavar="X.npy", help="where to write the float32 array (n, D)")
    sub.add_argument("--normalize", action="store_true", help="scale every row to length 1")
    sub.add_argument("--batch-size", type=int, default=64, metavar="N", help="rows at once (default 64)")
    sub.add_argument("--max-length", type=int, metavar="T", help="tokens kept of a sentence (default: the model's)")
    _model_arguments(sub)


def _evaluate_arguments(sub):
    sub.add_argument("files", metavar="FILE|FOLDER", nargs="+", help="columns sentence1, sentence2, score"
                     "[, subset], or pairs and triples without scores; a folder is the suite: sts12-test to "
                     "sts16-test, stsb-dev, stsb-test, sickr-test, as download writes them")  # fmt: skip
    sub.add_argument("--max-length", type=int, metavar="T", help="tokens kept (default: the model's)")
    _poolings_argument(sub)
    _model_arguments(sub)
    _json_argument(sub)


def _probe_arguments(sub):
    sub.add_argument("file", metavar="FILE", help="columns label and sentence (or text): .tsv .csv .jsonl")
    sub.add_argument("--folds", type=_number(int), default=10, metavar="K", help="parts of the data (default 10)")
    sub.add_argument("--seed", type=_number(int), default=0, metavar="N", help="of the parts (default 0)")
    _poolings_argument(sub)
    _model_arguments(sub)
    _json_argument(sub)


def _search_arguments(sub):
    sub.add_argument("query", metavar="QUERY")
    sub.add_argument("--corpus", metavar="FILE", help="one text a line; default: the documentation of your Python")
    sub.add_argument("-k", type=int, default=10, help="number of answers (default 10)")
    sub.add_argument("--weight", type=_number(float), metavar="W",
                     help="weight of the embeddings beside BM25 (default: as the run chose, else 0.5)")  # fmt: skip
    which = sub.add_mutually_exclusive_group()
    which.add_argument("--dense", action="store_true", help="embeddings alone")
    which.add_argument("--lexical", action="store_true", help="BM25 alone")
    _model_arguments(sub)
    _json_argument(sub)


def _diagnose_arguments(sub):
    sub.add_argument("file", metavar="FILE", help="one sentence a line; pairs for alignment; rated pairs for STS")
    sub.add_argument("--pooling", choices=POOLINGS, metavar="|".join(POOLINGS),
                     help="how --model is read (default: as it says)")  # fmt: skip
    sub.add_argument("--against", metavar="MODEL2", help="the model after training, to be read as it says")
    sub.add_argument("--fit", metavar="TEXT", help="sentences to fit centring and whitening to (default: FILE's)")
    sub.add_argument("--ranks", metavar="K,L", help="whiten to these numbers of directions as well")
    sub.add_argument("--picture", metavar="OUT.png", help="spectra, cosines and the alignment-uniformity plane")
    _model_arguments(sub)
    _json_argument(sub)


def _whiten_arguments(sub):
    sub.add_argument("file", metavar="FILE", help="sentences to fit to, one a line: as many as you have")
    sub.add_argument("--out", required=True, metavar="DIR", help="new or empty folder for the model")
    sub.add_argument("--kind", choices=FITTED, default=FITTED[0], metavar="|".join(FITTED),
                     help=f"every direction made equal, or the mean taken off (default {FITTED[0]})")  # fmt: skip
    sub.add_argument("--rank", type=_number(int), metavar="K", help="leading directions to keep (default: all)")
    sub.add_argument("--pooling", choices=POOLINGS, metavar="|".join(POOLINGS),
                     help="how a sentence vector is read (default: the model's)")  # fmt: skip
    sub.add_argument("--max-length", type=int, metavar="T", help="tokens kept (default: the model's)")
    _model_arguments(sub)
    _json_argument(sub)


def _export_arguments(sub):
    sub.add_argument("model", metavar="MODEL", help="run folder, or any other model")
    sub.add_argument("--to", required=True, metavar="DIR", help="new or empty folder to write")


def _download_arguments(sub):
    sub.add_argument("names", metavar="NAME", nargs="+", help="stsb, sts, sickr, nli, wiki1m, or a model's hub id")
    sub.add_argument("--to", default="data", metavar="DIR", help="folder for the files of a set (default data)")


def _info_arguments(sub):
    sub.add_argument("model", metavar="DIR", nargs="?", help="default: the newest run in ./runs")
    _json_argument(sub)


def _poolings_argument(sub):
    sub.add_argument("--pooling", type=_poolings, action="extend", metavar="P[,P...]", help="how a sentence vector is "
                     f"read, one row each: {', '.join(POOLINGS)} (default: the model's)")  # fmt: skip


def _model_arguments(sub):
    sub.add_argument("--model", metavar="DIR", help="folder, package:NAME or hub id (default: newest run)")
    sub.add_argument("--device", default="cpu", metavar="D", help="cpu, cuda or cuda:i (default cpu)")


def _json_argument(sub):
    sub.add_argument("--json", action="store_true", help="make the last line of output one JSON object")


# name: (summary, example, what adds the arguments)
COMMANDS = {
    "train": (
        "train a sentence encoder",
        "nano-simcse train wiki.txt --positives dropout --steps 500 --dev stsb-dev.tsv --out runs/wiki",
        _train_arguments,
    ),
    "study": (
        "train arms that differ in one thing, over several seeds",
        "nano-simcse study dropout --seeds 0,1 --steps 100 --out studies/dropout",
        _study_arguments,
    ),
    "encode": ("embed every line of a file", "nano-simcse encode lines.txt --out x.npy", _encode_arguments),
    "evaluate": (
        "score STS files or a suite of them, and recall on pairs",
        "nano-simcse evaluate data --model runs/001-dropout --pooling mean,cls_before_pooler",
        _evaluate_arguments,
    ),
    "probe": (
        "a linear classifier on frozen embeddings, cross-validated",
        "nano-simcse probe labelled.tsv --model runs/001-dropout",
        _probe_arguments,
    ),
    "search": (
        "find the texts closest to a query",
        'nano-simcse search "singular value decomposition of a matrix" -k 5',
        _search_arguments,
    ),
    "diagnose": (
        "what is wrong with embeddings, in words, and what training changed",
        "nano-simcse diagnose stsb-dev.tsv --against runs/001-dropout --picture geometry.png",
        _diagnose_arguments,
    ),
    "whiten": (
        "fit whitening or centring to a text and save the model with it",
        "nano-simcse whiten wiki.txt --model runs/001-dropout --rank 256 --out whitened",
        _whiten_arguments,
    ),
    "export": (
        "write a folder for sentence-transformers and transformers",
        "nano-simcse export runs/001-dropout --to my-model",
        _export_arguments,
    ),
    "download": ("fetch public sets and models", "nano-simcse download stsb --to data", _download_arguments),
    "info": ("what a model folder holds", "nano-simcse info runs/001-dropout", _info_arguments),
}

TEXTS = {"device": "D", "init": "MODEL"}
HELP = {
    "init": "model to go on from: a folder, package:NAME or a hub id; its vocabulary and shape are kept",
    "positives": "what belongs together: one sentence under two masks, two texts, two windows of a text",
    "layers": "transformer layers",
    "width": "width of the encoder",
    "heads": "attention heads",
    "vocab": "size of the WordPiece vocabulary",
    "steps": "training steps",
    "epochs": "length of the run in passes over the text, instead of --steps",
    "batch": "examples per step",
    "chunk": "examples held in memory at a time, for a batch that does not fit; 0 for all",
    "queue": "keys of earlier steps that are negatives too; 0 for none",
    "momentum": "with --queue: how slowly the encoder of the keys follows",
    "temperature": "temperature of InfoNCE",
    "lr": "peak learning rate",
    "warmup": "share of the steps over which the rate rises",
    "schedule": "decay of the learning rate",
    "weight_decay": "decoupled weight decay",
    "clip": "limit of the gradient norm",
    "dropout": "dropout rate",
    "masks": "a mask of its own for every view, one for all, or none",
    "max_length": "tokens kept of a text",
    "pooling": "how a sentence vector is read",
    "head": "tanh head on the pooled vector while training",
    "log_weight": "added to the logits of a row's own hard negative",
    "mlm_weight": "weight of the masked-language-model loss",
    "word_vectors": "word embeddings to begin with: counted in the text (default), or random",
    "held_out": "pairs kept out of training to measure with, at most; 0 trains on all of the text",
    "eval_every": "steps between evaluations and checkpoints",
    "seed": "of the parameters, the batches and the masks",
    "threads": "worker threads",
    "device": "cpu, cuda or cuda:i",
}


def _number(kind):
    def convert(text):
        try:
            return kind(text)
        except ValueError:
            expected = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r} is not {expected}") from None

    return convert


def _poolings(text):
    names = text.split(",")
    for name in names:
        if name not in POOLINGS:
            expected = f"{', '.join(POOLINGS)}{nearest(name, POOLINGS)}"
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {expected}")
    return names


def parse(argv=None):
    """The arguments; an option that does not exist ends the program with the nearest one that does."""
    top = parser()
    arguments, unknown = top.parse_known_args(argv)
    if getattr(arguments, "files", None) == [] and not any(word.startswith("-") for word in unknown):
        arguments.files, unknown = unknown, []  # files after options, which argparse does not look for behind a topic
    if unknown:
        sub = next(a for a in top._actions if a.dest == "command").choices[arguments.command]
        options = [name for action in sub._actions for name in action.option_strings]
        first = next((word for word in unknown if word.startswith("-")), unknown[0])
        sub.error(f"{first!r} is not an argument of {arguments.command}{nearest(first, options)}")
    return arguments


def main(argv=None):
    """Run one command; returns the exit code."""
    sys.stdout.reconfigure(errors="replace") if hasattr(sys.stdout, "reconfigure") else None
    warnings.showwarning = _note
    try:
        arguments = parse(argv)
        # imported here, so that --help does not wait for scipy, matplotlib and tokenizers
        run = getattr(importlib.import_module(".commands", __package__), arguments.command)
        return run(arguments) or 0
    except (InputError, NonFiniteLoss) as error:
        return _fail(error, 2)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except MemoryError as error:  # CuPy's is one too
        return _fail(f"out of memory; a smaller model, batch, chunk, queue or max_length needs less ({error})", 2)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; there is nobody to tell
        return 0
    except OSError as error:
        where = f" {error.filename!r}" if error.filename else ""
        return _fail(f"cannot read or write{where}: {error.strerror or error}", 2)


def _note(message, category, *_):
    """A warning as one line; overflow on the way to a loss that is not finite is told by the error that follows."""
    if not issubclass(category, RuntimeWarning):
        print(f"nano-simcse: note: {message}", file=sys.stderr)


def _fail(error, code):
    print(f"{speaker()}nano-simcse: {error}", file=sys.stderr, flush=True)
    return code

