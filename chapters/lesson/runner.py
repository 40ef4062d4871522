"""Find chapters and run them, cell by cell, with every claim recorded."""

import contextlib
import difflib
import functools
import io
import multiprocessing
import os
import pathlib
import re
import signal
import sys
import time
import traceback
import types
from dataclasses import dataclass, field

import numpy as np
from lesson import cells, narration
from lesson.records import Record, recording
from threadpoolctl import threadpool_limits

FOLDER = pathlib.Path(__file__).resolve().parents[1]
ROOT = FOLDER.parent


class UnknownChapter(ValueError):
    """No chapter goes by that name."""


@dataclass
class Result:
    """One run of one chapter."""

    name: str
    title: str = ""
    records: list[Record] = field(default_factory=list)
    namespace: dict = field(default_factory=dict)
    output: str = ""
    error: str = ""  # the traceback, when the chapter did not reach its end
    seconds: float = 0.0

    def of_kind(self, kind):
        return [record for record in self.records if record.kind == kind]

    @property
    def failures(self):
        return [record for record in self.records if not record.passed]

    @property
    def errata(self):
        """Distinct mistakes: calls that share a key are one erratum."""
        return {record.erratum.key for record in self.of_kind("erratum")}

    @property
    def passed(self):
        return not (self.failures or self.error)


def paths():
    """The chapter files in order."""
    return sorted(path for path in FOLDER.glob("ch*.py") if is_chapter(path))


def is_chapter(path):
    return cells.is_chapter(path)


def find(wanted):
    """The chapter files named: "5", "ch05", "ch05_temperature" or "temperature". None named: all of them."""
    known = paths()
    return [_find_one(name, known) for name in wanted] if wanted else known


def _find_one(name, known):
    stem = pathlib.PurePath(name).name.removesuffix(".py").lower()
    by_alias = {}
    for path in known:
        number, _, rest = path.stem.partition("_")
        for alias in (path.stem, number, rest, number[2:], str(int(number[2:])), f"ch{int(number[2:])}"):
            by_alias[alias] = path
    if stem in by_alias:
        return by_alias[stem]
    near = difflib.get_close_matches(stem, by_alias, n=1, cutoff=0.5)
    hint = f"did you mean {by_alias[near[0]].stem}?" if near else f"there are {_span(known)}."
    raise UnknownChapter(f"no chapter {name!r}; {hint}")


def _span(known):
    return ", ".join(path.stem for path in known) or "none"


def title_of(path):
    """The first line of the chapter's docstring."""
    match = re.match(r'\s*"""(.+?)(\n|""")', path.read_text(encoding="utf-8"))
    return match.group(1).strip().rstrip(".") if match else path.stem


def run(path, echo=False, pause=None):
    """Run a chapter once per process (a second call returns the same result, unless echo or pause asks anew).

    echo: print as the chapter prints, with the words of every cell before what it computes; otherwise its output is
    kept in the result. pause(cell, number, total, namespace): a context manager around every cell, for the stepper.
    """
    full = os.environ.get("NANO_SIMCSE_FULL", "") not in ("", "0")
    return _run(path, True, pause) if echo or pause else _run_once(path, full)


def run_all(chosen):
    """Run chapters in parallel, one process per core; yields results in order, without their namespaces."""
    jobs = min(len(chosen), os.cpu_count() or 1)
    if jobs < 2:
        yield from map(run, chosen)
        return
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # the processes share the cores
    context = multiprocessing.get_context("spawn")
    pool = context.Pool(jobs, _ignore_interrupts)
    try:
        yield from pool.imap(_run_in_worker, chosen, chunksize=1)
        pool.close()  # workers that leave by themselves hand back their semaphores
    except BaseException:
        pool.terminate()
        raise
    finally:
        pool.join()


def _ignore_interrupts():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers


def _run_in_worker(path):
    result = _run(path, False, None)
    result.namespace = {}  # functions defined in a chapter cannot travel between processes
    return result


@functools.cache
def _run_once(path, full):
    return _run(path, False, None)


def _run(path, echo, pause):
    result = Result(path.stem, title_of(path))
    module = types.ModuleType(f"chapters.{path.stem}")
    module.__file__ = str(path)
    result.namespace = module.__dict__
    replaced = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module  # dataclasses and pickle look a class up through its module
    sink = io.StringIO()
    started = time.perf_counter()
    with contextlib.ExitStack() as stack:
        if not echo:
            stack.enter_context(contextlib.redirect_stdout(sink))
        stack.enter_context(np.printoptions())
        stack.enter_context(np.errstate())
        stack.enter_context(threadpool_limits(1))  # small matrices: more threads only get in each other's way
        recorder = stack.enter_context(recording(path.stem))
        result.records = recorder.records
        try:
            found = cells.split(path)
            for number, cell in enumerate(found, 1):
                if echo and not pause:
                    narration.announce(cell)
                with pause(cell, number, len(found), module.__dict__) if pause else contextlib.nullcontext():
                    if cell.code is not None:
                        exec(cell.code, module.__dict__)
        except Exception as error:
            result.error = _traceback(error)
        finally:
            if replaced is None:
                sys.modules.pop(module.__name__, None)
            else:
                sys.modules[module.__name__] = replaced
    result.seconds = time.perf_counter() - started
    result.output = sink.getvalue()
    return result


def _traceback(error):
    """The traceback from the chapter's own line downwards."""
    frames = traceback.extract_tb(error.__traceback__)
    kept = [f for f in frames if pathlib.Path(f.filename).parent != pathlib.Path(__file__).parent]
    return "".join(traceback.format_list(kept) + traceback.format_exception_only(error)).rstrip()
