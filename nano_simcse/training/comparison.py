"""One run for every way of making positives, side by side: what `nano-simcse train --compare` does."""

from contextlib import ExitStack
from dataclasses import asdict, replace

from ..checkpoint import read_json
from ..errors import CheckpointError, InputError
from ..ranks import current_ranks
from .config import POSITIVES, TrainingConfig
from .material import NoPairs
from .pictures import draw_comparison
from .run_folder import RunFolder, claim_run, remove_if_empty
from .runs import combined, path_of, require_same, train


def compare(
    files=(), *, config=None, dev=None, out=None, resume=False, overwrite=False, progress=None, say=None, **options
):
    """Train once for every way of making positives and draw the results side by side.

    Takes the arguments of `train`, without positives. The runs are subfolders of `out`. Returns (list of RunResult,
    path); stops early, with fewer results, after an interrupted run, and goes on from there with resume. On plain
    sentences, which have no pairs, only dropout and crop run.
    """
    if "positives" in options:
        raise InputError("compare trains every kind of positives; leave out positives")
    base = combined(config, options)
    if base.held_out < 2:  # of one, none is left to report on
        raise InputError(
            f"compare measures each kind of positives on held-out pairs, but held_out is {base.held_out}; expected at "
            "least 2"
        )
    if resume and out is None:
        raise InputError("resume needs the folder of the comparison to go on with; expected --out DIR")
    ranks = current_ranks()
    path = path_of(out) or ranks.broadcast(lambda: claim_run("compare"))
    if resume:
        files, dev, base = _saved_comparison(path, files, dev, base, options)
    results = []
    with ExitStack() as stack:
        if ranks.rank == 0:
            stack.callback(remove_if_empty, path)  # where nothing could run
        for positives in POSITIVES:
            try:
                result = train(
                    files, config=replace(base, positives=positives), dev=dev, out=path / positives,
                    resume=(goes_on := resume and _is_part_of(base, path / positives)),
                    overwrite=overwrite or (resume and not goes_on), progress=progress, say=say,
                )  # fmt: skip
            except NoPairs as error:
                if ranks.rank == 0:
                    (say or print)(str(error))
                continue
            results.append(result)
            if not result.finished:
                break
    if ranks.rank == 0:
        draw_comparison(path / "compare.png", [r.report for r in results])
    return results, path


def _saved_comparison(path, files, dev, config, options):
    """Files, dev file and config that the comparison in `path` was started with, read from its first run."""
    begun = [run for run in (RunFolder(path / positives) for positives in POSITIVES) if run.training.exists()]
    if not begun:
        raise InputError(f"{str(path)!r} holds no comparison to resume")
    saved = read_json(begun[0].training)
    try:
        stored = TrainingConfig(**{**saved["given"], "positives": None})
        started_on, started_dev = saved["files"], saved["dev"]
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{begun[0].training} does not describe a run of a comparison ({error})") from None
    require_same(config, stored, options, f"the comparison in {path}")
    return files or started_on, dev or started_dev, stored


def _is_part_of(base, path):
    """Whether `path` holds a run of the comparison with these options, and not one of an earlier comparison."""
    run = RunFolder(path)
    return run.training.exists() and {**read_json(run.training)["given"], "positives": None} == asdict(base)
