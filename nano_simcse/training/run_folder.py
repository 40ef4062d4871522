"""The folder of a run: what is where, and what may be overwritten.

    config.json tokenizer.json vocab.txt    the model's description
    model.safetensors                       the best checkpoint (the last, where nothing was there to choose by)
    last.safetensors                        parameters, moments and step of the last checkpoint, to resume from
    training.json                           options, files and digest of the training text
    metrics.jsonl                           one line per logged step, no times: two equal runs write equal bytes
    progress.json                           seconds so far, best step and score
    result.json  training.png               what came out
"""

import json
import os
import re
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

from ..checkpoint import read_json, write_json
from ..errors import CheckpointError, InputError
from ..files import WRITING, atomic_write

RUNS = Path("runs")
DESCRIPTION = ("config.json", "tokenizer.json", "vocab.txt")


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
        overwrite was asked for, there is nothing to resume, or it is a file or holds something that is not a run."""
        name, holds_run = repr(str(self.path)), self.training.exists()
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"output folder {name} is a file")
        if self.path.is_symlink() and not self.path.exists():
            raise InputError(f"output folder {name} is a link to nothing")
        if resume and not holds_run:
            raise InputError(f"{name} holds no run to resume")
        if holds_run and not (resume or overwrite):
            raise InputError(f"{name} already holds a run; give --resume, --overwrite or another --out")
        if not holds_run and self.path.exists() and any(not self._ours(file) for file in self.path.iterdir()):
            raise InputError(f"output folder {name} is not empty and holds no run; expected a new folder")

    def _ours(self, file):
        """Whether a file is of a run, or of one that was killed before it had written all it is known by."""
        return file in self._files() or file.name.startswith(WRITING)

    def _files(self):
        results = (self.last, self.best, self.metrics, self.progress, self.result, self.picture)
        # training.json, by which a run is known, goes last
        return (*results, *(self.path / name for name in DESCRIPTION), self.training)

    @contextmanager
    def held(self):
        """Make the folder, if need be, and keep other processes from training in it. Raises InputError where one does.

        The lock is the system's, on the folder itself: it leaves no file, and goes with the process that holds it.
        Where there are no such locks (Windows, some network disks) nothing is checked.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        if fcntl is None:
            yield
            return
        handle = os.open(self.path, os.O_RDONLY)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"another process is training in {str(self.path)!r}; wait for it or give another --out"
                ) from None
            except OSError:
                pass  # a disk without locks
            yield
        finally:
            os.close(handle)

    def clear(self):
        """Make the folder, and remove what an earlier run left in it."""
        self.path.mkdir(parents=True, exist_ok=True)
        for file in self._files():
            file.unlink(missing_ok=True)

    def abandon(self):
        """Undo `clear` after a start that failed: no file of the run stays, nor the folder if it is then empty."""
        self.clear()
        with suppress(OSError):
            self.path.rmdir()

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
        lines = self.metrics.read_text(encoding="utf-8").split("\n")
        try:
            return [json.loads(line) for line in lines[:-1] if line]
        except ValueError as error:
            raise CheckpointError(f"{self.metrics} is damaged ({error})") from None

    def read_progress(self):
        """What `write_progress` wrote; CheckpointError where it is damaged."""
        values = read_json(self.progress)
        if not isinstance(values, dict) or not {"seconds", "best_step", "best_score"} <= values.keys():
            raise CheckpointError(f"{self.progress} does not hold the progress of a run")
        return values

    def write_progress(self, **values):
        write_json(self.progress, values)


def claim_run(name, runs=RUNS):
    """Make and return runs/NNN-name with the number after the highest one in use, which no other process gets."""
    runs.mkdir(parents=True, exist_ok=True)
    while True:
        number = _highest(runs) + 1
        lock = runs / f".{number:03d}"
        try:
            lock.mkdir()  # fails where another process is about to use this number
        except FileExistsError:
            continue
        try:
            if _highest(runs) < number:
                path = runs / f"{number:03d}-{name}"
                path.mkdir()
                return path
        finally:
            lock.rmdir()


def _highest(runs):
    return max((int(m.group(1)) for p in runs.glob("*") if (m := re.match(r"(\d{3,})-", p.name))), default=0)


def _recall(path):
    """recall@1 that a run ended with; -1 where it does not say."""
    try:
        return json.loads((path / "result.json").read_text(encoding="utf-8"))["after"]["recall_at_1"]
    except (OSError, ValueError, KeyError, TypeError):
        return -1.0


def newest_run(runs=RUNS):
    """The run with the highest number that holds a model. Raises InputError where there is none."""
    found = [(int(m.group(1)), p) for p in runs.glob("*") if (m := re.match(r"(\d{3,})-", p.name))]
    for _, path in sorted(found, reverse=True):
        models = [p for p in (path, *sorted(path.glob("*/"))) if (p / "model.safetensors").exists()]
        if models:
            return max(models, key=_recall)  # of runs that were compared, the one that finds most
    raise InputError(f"there is no run in ./{runs}; train one first (nano-simcse train) or give --model DIR")
