"""The folder of a run: what is where, and what may be overwritten.

    config.json tokenizer.json vocab.txt    the model's description
    model.safetensors                       the best checkpoint (the last, where nothing was there to choose by)
    last.safetensors                        parameters, moments and step of the last checkpoint, to resume from
    training.json                           options, files and digest of the training text; by it a run is known
    metrics.jsonl                           one line per logged step, no times: two equal runs write equal bytes
    progress.json                           seconds so far, best step and score
    result.json  training.png               what came out
"""

import json
import os
import re
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

from ..checkpoint import read_json, write_json
from ..errors import CheckpointError, InputError
from ..files import WRITING, atomic_write, put_back, staged

RUNS = Path("runs")
NAMES = (
    "last.safetensors", "model.safetensors", "metrics.jsonl", "progress.json", "result.json", "training.png",
    "config.json", "tokenizer.json", "vocab.txt", "training.json",
)  # fmt: skip


class RunFolder:
    """Paths and small files of one run."""

    def __init__(self, path):
        self.path = Path(path)
        self.last = self.path / "last.safetensors"
        self.best = self.path / "model.safetensors"
        self.training = self.path / "training.json"
        self.metrics = self.path / "metrics.jsonl"
        self.progress = self.path / "progress.json"
        self.result = self.path / "result.json"
        self.picture = self.path / "training.png"

    def check(self, resume=False, overwrite=False):
        """Raise InputError where this folder cannot take the run: it already holds one and neither resume nor
        overwrite was asked for, there is nothing to resume, it is a file or holds something that is not a run, or
        nothing can be written there."""
        name, holds_run = repr(str(self.path)), self.training.exists()
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"output folder {name} is a file")
        if self.path.resolve() == RUNS.resolve():  # its lock is that of the numbering
            raise InputError(f"output folder {name} is where the numbered runs go; expected a folder of its own")
        if self.path.is_symlink() and not self.path.exists():
            raise InputError(f"output folder {name} is a link to nothing")
        if resume and not holds_run:
            raise InputError(f"{name} holds no run to resume")
        if holds_run and not (resume or overwrite):
            raise InputError(f"{name} already holds a run; give --resume, --overwrite or another --out")
        above = next(folder for folder in (self.path, *self.path.absolute().parents) if folder.exists())
        if not above.is_dir() or not os.access(above, os.W_OK):
            raise InputError(f"output folder {name} cannot be made or written to, because {str(above)!r} cannot")
        if not holds_run and self.path.exists() and any(not self._ours(file) for file in self.path.iterdir()):
            raise InputError(f"output folder {name} is not empty and holds no run; expected a new folder")

    def _ours(self, file):
        """Whether a file is of a run, or of one that was killed before it had written all it is known by."""
        return file.name in NAMES or file.name.startswith(WRITING)

    @contextmanager
    def held(self):
        """Make the folder, if need be, and keep other processes from training in it. Raises InputError where one does.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            try:
                stack.enter_context(_locked(self.path, wait=False))
            except BlockingIOError:
                raise InputError(
                    f"another process is training in {str(self.path)!r}; wait for it or give another --out"
                ) from None
            put_back(self.path, NAMES)
            yield

    @contextmanager
    def begun(self):
        """Give a RunFolder to begin a run in. On success its files take the place of what an earlier run left here; on
        failure they go, and so does this folder where it is empty."""
        try:
            with staged(self.path, NAMES) as scratch:
                yield RunFolder(scratch)
        finally:
            remove_if_empty(self.path)

    def keep_metrics(self, step):
        """Drop the logged lines after `step`, which a resumed run will write again."""
        with atomic_write(self.metrics) as temporary:
            kept = [line for line in self.read_metrics() if line["step"] <= step]
            temporary.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")

    def log(self, line):
        """Append one line to metrics.jsonl."""
        with open(self.metrics, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def read_metrics(self):
        """The logged lines as dicts; an unfinished last line, from a killed run, is left out."""
        if not self.metrics.exists():
            return []
        try:
            lines = self.metrics.read_text(encoding="utf-8").split("\n")
            logged = [json.loads(line) for line in lines[:-1] if line]
        except ValueError as error:
            raise CheckpointError(f"{self.metrics} is damaged ({error})") from None
        if not all(isinstance(line, dict) and isinstance(line.get("step"), int) for line in logged):
            raise CheckpointError(f"{self.metrics} is damaged (a line without its step)")
        return logged

    def read_progress(self):
        """What `write_progress` wrote; CheckpointError where it is damaged."""
        values = read_json(self.progress)
        if not isinstance(values, dict) or not {"seconds", "best_step", "best_score"} <= values.keys():
            raise CheckpointError(f"{self.progress} does not hold the progress of a run")
        return values

    def write_progress(self, **values):
        write_json(self.progress, values)


def remove_if_empty(folder):
    with suppress(OSError):
        folder.rmdir()


def claim_run(name, runs=RUNS):
    """Make and return runs/NNN-name with the number after the highest one in use, which no other process gets."""
    runs.mkdir(parents=True, exist_ok=True)
    with _locked(runs, wait=True):
        path = runs / f"{_highest(runs) + 1:03d}-{name}"
        path.mkdir()
        return path


@contextmanager
def _locked(folder, wait):
    """Hold the system's lock on a folder; where another process holds it, wait or raise BlockingIOError.

    It leaves no file, and goes with the process that holds it. Where there are no such locks (Windows, some network
    disks) nothing is checked.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise
        except OSError:
            pass  # a disk without locks
        yield
    finally:
        os.close(handle)


def _highest(runs):
    return max((int(m.group(1)) for p in runs.glob("*") if (m := re.match(r"(\d{3,})-", p.name))), default=0)


def newest_run(runs=RUNS):
    """The run in `runs` that was begun last and holds a model. Raises InputError where there is none."""
    found = [[run for run in (path, *_folders(path)) if _begun(run)] for path in _folders(runs)]
    found = [models for models in found if models]
    if not found:
        raise InputError(f"there is no run in ./{runs}; train one first (nano-simcse train) or give --model DIR")
    newest = max(found, key=lambda models: max(_begun(path) for path in models))
    return max(newest, key=_recall)  # of runs that were compared, the one that finds most


def _folders(path):
    """The folders in a folder, but for those that are being written; none where it cannot be read."""
    try:
        return sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith(WRITING))
    except OSError:
        return []


def _begun(path):
    """When the run in a folder was begun, in ns, and its name for runs of one moment; None where it holds no model."""
    try:
        begun = (path / "model.safetensors").stat().st_mtime_ns
        with suppress(FileNotFoundError):
            begun = (path / "training.json").stat().st_mtime_ns
    except OSError:
        return None
    return begun, path.name


def _recall(path):
    """recall@1 that a run ended with; -1 where it does not say."""
    try:
        return float(json.loads((path / "result.json").read_text(encoding="utf-8"))["after"]["recall_at_1"])
    except (OSError, ValueError, KeyError, TypeError):
        return -1.0
