"""From options and files to a run folder: what `nano-simcse train` does."""

import hashlib
import json
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from ..backend import device_of_place, resolve_device, to_device
from ..checkpoint import load_parameters, read_json, write_json
from ..errors import CheckpointError, InputError
from ..parameters import Parameters
from ..protocol import read_set
from ..ranks import SERIAL, current_ranks
from .config import TrainingConfig, check_names
from .initial import OF_THE_CHECKPOINT, initial_encoder
from .loop import Training
from .material import gather
from .pictures import draw_training
from .report import Judge, search_report
from .run_folder import RunFolder, claim_run
from .samplers import Sampler

# What each way of making positives needs: chosen on the validation pairs of the default corpus.
DEFAULTS = {
    "dropout": {"steps": 600, "lr": 2e-3, "temperature": 0.1, "max_length": 64},
    "pairs": {"steps": 400, "lr": 2e-3, "temperature": 0.05, "max_length": 64},
    "crop": {"steps": 400, "lr": 2e-3, "temperature": 0.05, "max_length": 64},
}
FROM_SCRATCH = {"word_vectors": "ppmi"}
FINE_TUNING = {"lr": 3e-5, "temperature": 0.05}  # where training goes on from a checkpoint: the paper's for BERT


@dataclass(frozen=True)
class RunResult:
    """A run as it ended: encoder (the best checkpoint), path of its folder, finished or interrupted, and the report:
    {"positives", "steps", "seconds", "out", "before", "after", "last", "search", ...}."""

    encoder: object
    path: Path
    finished: bool
    report: dict


def train(
    files=(), *, config=None, dev=None, out=None, resume=False, overwrite=False, progress=None, say=None, **options
):
    """Train a sentence encoder; what `nano-simcse train` does.

    files: paths of training text (see data.readers), none for the docstrings of the installed scientific stack;
    config: TrainingConfig, or its fields as keyword options (positives="pairs", steps=100, ...); dev: path of an STS
    file to choose the best checkpoint by; out: run folder, runs/NNN-positives by default; resume: go on with the
    run in `out`; overwrite: replace it; progress: None shows bars on a terminal; say: called with lines of text on
    the way. Returns RunResult. Raises InputError and its kin before any work is done where something does not fit,
    NonFiniteLoss where training diverges. Called by every rank of an MPI program (ranks.py), it is one run, which rank
    0 writes and speaks for; all get its result.
    """
    ranks = current_ranks()
    files, dev, out = _paths(files), path_of(dev), path_of(out)
    config = combined(config, options)
    if say is None or ranks.rank:
        say = _nothing
    if resume and out is None:
        raise InputError("resume needs the folder of the run to go on with; expected --out DIR")
    if resume and overwrite:
        raise InputError("resume goes on with a run and overwrite replaces it; expected one of them")
    if out is not None:
        ranks.broadcast(lambda: RunFolder(out).check(resume, overwrite))
    if resume:
        files, dev, config = _saved_options(RunFolder(out), files, dev, config, options, ranks)
    elif config.init is not None and (own := [name for name in OF_THE_CHECKPOINT if options.get(name) is not None]):
        raise InputError(f"{own[0]} is {options[own[0]]}, but with init it is the checkpoint's; leave it out")
    if ranks.size > 1 and config.mlm_weight:
        raise InputError(f"mlm_weight is {config.mlm_weight} with {ranks.size} ranks; expected 0, or a single process")
    device = resolve_device(device_of_place(config.device, ranks.place) if ranks.size > 1 else config.device)
    dev_pairs = read_set(dev, rated=True) if dev else None
    material = ranks.broadcast(lambda: gather(config.positives, files, progress, config.held_out))
    given, config = config, filled(config, material, ranks)
    material.require(config)

    say(material.origin)
    encoder = initial_encoder(config, material.texts, device, out if resume else None, ranks, progress)
    tokenizer = encoder.tokenizer
    rows, cut = tokenizer.encode(material.texts, config.max_length)
    sampler = Sampler(
        rows, material.examples, config.positives, config.batch, config.seed, tokenizer.cls_id, tokenizer.sep_id
    )
    digest = _digest(material, dev_pairs)
    ranks.require_equal(
        f"{replace(config, threads=None)} {digest} {encoder.fingerprint() if ranks.size > 1 else ''}",
        "the ranks differ in their options, training text or initial model; expected the same files on every machine",
    )
    test, judge = Judge(material.test, dev_pairs), Judge([] if dev_pairs else material.validation, dev_pairs)
    say(
        f"{len(material.examples):,} examples, {cut:,} of {len(rows):,} texts cut to {config.max_length} tokens, "
        f"vocabulary {tokenizer.vocab_size:,}, {encoder.params.flat.size:,} parameters, "
        f"{sampler.steps_per_epoch} steps an epoch"
    )
    before = None if resume else ranks.broadcast(lambda: test.measure(encoder))
    # only now: what cannot be trained on or measured must not cost an earlier run its folder, nor leave one
    folder = RunFolder(out or ranks.broadcast(lambda: claim_run(config.positives)))
    with ExitStack() as stack:
        ranks.broadcast(lambda: stack.enter_context(folder.held()))
        ranks.broadcast(lambda: folder.check(resume, overwrite))  # again: another process may have been faster
        training = Training(encoder, sampler, config, folder, judge, ranks)
        if resume:
            before = _go_on(training, files, dev, digest)
        else:
            _begin(training, files, dev, {"given": asdict(given), "digest": digest, "before": before})
        finished = training.done == config.steps or training.run(progress)
        report, best = ranks.broadcast(lambda: _finish(training, test, material, before, finished))
    best = Parameters(encoder.params.shapes, to_device(best, device))
    return RunResult(encoder.with_parameters(best), folder.path, finished, report)


def filled(config, material, ranks=SERIAL):
    """The config with every None replaced: positives as resolved, and what the positives imply."""
    start = FINE_TUNING if config.init else FROM_SCRATCH
    implied = {"positives": material.positives} | DEFAULTS[material.positives] | start
    chosen = {name: value for name, value in implied.items() if getattr(config, name) is None}
    if config.epochs is not None and config.steps is None:
        chosen["steps"] = max(1, round(config.epochs * (len(material.examples) // config.batch)))
    if config.threads is None:
        chosen["threads"] = ranks.cores() if config.device == "cpu" else 1
    return replace(config, **chosen)


def combined(config, options):
    """The TrainingConfig of `config` with `options` instead of its own values."""
    if config is not None and not isinstance(config, TrainingConfig):
        raise InputError(f"config is a {type(config).__name__}; expected a TrainingConfig, or options by name")
    check_names(options)
    return replace(config or TrainingConfig(), **options)


def path_of(given):
    """A path the user gave, with ~ for the home folder; None stays None."""
    if given is not None and not isinstance(given, str | Path):
        raise InputError(f"{given!r} is a {type(given).__name__}; expected the path of a file or folder")
    return given if given is None else Path(given).expanduser()


def _paths(given):
    if given is None or isinstance(given, str | Path):
        return [] if given is None else [path_of(given)]
    try:
        return [path_of(file) for file in given]
    except TypeError:
        raise InputError(f"files is {given!r}; expected the paths of text files") from None


def _saved_options(folder, files, dev, config, options, ranks):
    """Files, dev file and config of the run in `folder`. What is given again must be the same (`require_same`); files
    may have moved, because the digest tells whether they are the same text. Threads are chosen anew for another number
    of ranks."""
    saved = read_json(folder.training)
    try:
        stored = TrainingConfig(**saved["config"])
        started_on, started_dev = saved["files"], saved["dev"]
        _ = saved["digest"], saved["before"]
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{folder.training} does not describe a run ({error})") from None
    if ranks.size != saved.get("ranks", 1):
        stored = replace(stored, threads=config.threads)
    require_same(config, stored, options, f"the run in {folder.path}")
    if dev is not None and started_dev is None:
        raise InputError(f"dev is {str(dev)!r}, but the run in {folder.path} was started with None")
    return files or _paths(started_on), dev or path_of(started_dev), stored


def require_same(config, stored, options, started):
    """Raise InputError where an option that was asked for, in `options` by name or in `config` by a value that is not
    the default, is not the one that `started`, in words, was started with."""
    for field in fields(TrainingConfig):
        given, kept = getattr(config, field.name), getattr(stored, field.name)
        if (options.get(field.name) is not None or given != field.default) and given != kept:
            raise InputError(f"{field.name} is {given!r}, but {started} was started with {kept!r}")


def _begin(training, files, dev, known):
    """Write the first checkpoint and what the run is known by; only then does it take the place of an earlier run."""
    folder, ranks = training.folder, training.ranks
    with ExitStack() as stack:
        training.folder = ranks.broadcast(lambda: stack.enter_context(folder.begun()))
        training.begin()
        ranks.broadcast(lambda: _describe(training, files, dev, known))
    training.folder = folder


def _describe(training, files, dev, known):
    training.encoder.save_description(training.folder.path)
    description = _paths_of(files, dev)
    if training.ranks.size > 1:
        description["ranks"] = training.ranks.size
    write_json(training.folder.training, {**description, "config": asdict(training.config), **known})


def _go_on(training, files, dev, digest):
    """Restore the training from its folder; returns the measures from before the run."""
    folder = training.folder
    saved = read_json(folder.training)
    if saved["digest"] != digest:
        raise InputError(f"the training text is not the one that {folder.path} was started with, or the dev file")
    training.restore()
    if training.ranks.rank == 0:
        training.encoder.save_description(folder.path)  # a run must not end in a model that cannot be read
        write_json(folder.training, {**saved, **_paths_of(files, dev)})  # they may have moved
    return saved["before"]


def _paths_of(files, dev):
    return {"files": [str(file.resolve()) for file in files], "dev": dev and str(dev.resolve())}


def _finish(training, test, material, before, finished):
    """Measure the run and write result.json and the picture; returns (report, parameters (n,) of the best checkpoint).
    In the report `after` is the best checkpoint, `last` the final step."""
    config, folder, encoder = training.config, training.folder, training.encoder
    params = load_parameters(folder.best, encoder.params.shapes)
    best = encoder.with_parameters(Parameters(params.shapes, to_device(params.flat, encoder.device)))
    after = test.measure(best)
    report = {
        "positives": config.positives,
        "steps": training.done,
        "seconds": round(training.seconds, 2),
        "out": str(folder.path),
        "finished": finished,
        "task": material.task,
        "held_out": len(material.test),
        "best_step": training.best_step,
        "before": before,
        "after": after,
        "last": after if training.best_step == training.done else test.measure(encoder),
        "search": search_report(best, test, Judge(material.validation)),
    }
    write_json(folder.result, report)
    candidates = config.batch * (material.examples.shape[1] - 1 or 1) + config.queue
    draw_training(folder, candidates)
    return report, params.flat


def _nothing(line):
    """Where nobody listens."""


def _digest(material, dev_pairs):
    """16 hex digits of what a run trains on and is chosen by."""
    digest = hashlib.sha256(json.dumps(material.texts, ensure_ascii=True).encode())
    digest.update(material.examples.tobytes())
    if dev_pairs:
        digest.update(json.dumps(dev_pairs, ensure_ascii=True).encode())
    return digest.hexdigest()[:16]
