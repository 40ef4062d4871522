"""What a chapter has claimed so far: one record per check, erratum, quoted figure or recorded study."""

import contextlib
import pathlib
import sys
from dataclasses import dataclass

from lesson import narration

_LABEL = 54


class CheckFailed(AssertionError):
    """A claim of a chapter does not hold."""


@dataclass(frozen=True)
class Erratum:
    """One line of the errata page. Calls with the same key share the line."""

    key: str
    where: str
    says: str
    right: str
    why: str
    source: str = ""


@dataclass(frozen=True)
class Record:
    """One claim and what came of it. computed is shown as it is; problem is one sentence, empty when it holds."""

    kind: str  # check, erratum, quoted or recorded
    chapter: str
    label: str
    claimed: str
    computed: str
    problem: str = ""
    line: int = 0
    erratum: Erratum | None = None

    @property
    def passed(self):
        return not self.problem

    def __str__(self):
        mark = {"quoted": "quote", "recorded": "last"}.get(self.kind, "ok" if self.passed else "FAIL")
        text = f"  {mark:<5} {self.label:<{_LABEL}} {self.claimed:>12}"
        if self.computed:
            text += f"   {self.computed}"
        return text if self.passed else f"{text}\n        {self.problem}"


class Recorder:
    """Collects the records of one run of one chapter.

    keep_going: note a failed claim and carry on (runner, pytest); otherwise raise CheckFailed at once.
    """

    def __init__(self, chapter=None, keep_going=False):
        self.chapter = chapter
        self.keep_going = keep_going
        self.records = []

    def add(self, **fields):
        frame = caller()
        narration.reach(frame)
        label = " ".join(fields.pop("label").split()).replace("::", ":")
        if not label:
            raise ValueError("a check needs a label that says what the number is")
        chapter = self.chapter or pathlib.Path(frame.f_globals.get("__file__", "notebook")).stem
        if self.keep_going:  # test ids must be distinct; a notebook cell may be run twice
            label = self._distinct(label)
        record = Record(chapter=chapter, label=label, line=frame.f_lineno, **fields)
        self.records.append(record)
        print(record)
        if not (record.passed or self.keep_going):
            raise CheckFailed(f"{chapter}: {label}: {record.problem}")

    def _distinct(self, label):
        taken = {record.label for record in self.records}
        if label not in taken:
            return label
        number = 2
        while f"{label} ({number})" in taken:
            number += 1
        return f"{label} ({number})"


_recorder = Recorder()


def recorder():
    """The recorder in force."""
    return _recorder


@contextlib.contextmanager
def recording(chapter):
    """Within the block every claim goes to a fresh recorder that keeps going; yields it."""
    global _recorder
    before, _recorder = _recorder, Recorder(chapter, keep_going=True)
    try:
        yield _recorder
    finally:
        _recorder = before


def caller():
    """The frame of the chapter's line: the first one outside this package."""
    here = pathlib.Path(__file__).parent
    frame = sys._getframe(1)
    while frame.f_back is not None and pathlib.Path(frame.f_code.co_filename).parent == here:
        frame = frame.f_back
    return frame
