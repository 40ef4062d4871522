"""Which exercises there are, and how a reader's file becomes a function."""

import difflib
import pathlib
import re
import sys
import traceback
import types
from dataclasses import dataclass

FOLDER = pathlib.Path(__file__).resolve().parent
_FIRST_LINE = re.compile(r'"""Exercise (\d+) \(chapter (\d+)\): (.+?)\.?(?:\n|""")')


class UnknownExercise(ValueError):
    """No exercise goes by that name."""


class ReaderError(Exception):
    """The reader's own code failed; the text says what and in which line."""


class NotStarted(Exception):
    """The function still raises NotImplementedError."""


@dataclass(frozen=True)
class Exercise:
    """One task: exNN_name.py holds a function called name."""

    number: int
    name: str
    chapter: int
    title: str

    @property
    def file_name(self):
        return f"ex{self.number:02}_{self.name}.py"


def exercises():
    """All exercises in order, read from the solutions (which nobody edits)."""
    found = []
    for path in sorted((FOLDER / "solutions").glob("ex*.py")):
        number, chapter, title = _FIRST_LINE.match(path.read_text(encoding="utf-8")).groups()
        found.append(Exercise(int(number), path.stem[5:], int(chapter), title))
    return found


def find(wanted):
    """The exercise called "3", "ex03", "ex03_infonce_grad" or "infonce_grad". Raises UnknownExercise."""
    stem = pathlib.PurePath(wanted).name.removesuffix(".py").lower()
    aliases = {}
    for one in exercises():
        for alias in (one.name, one.file_name.removesuffix(".py"), str(one.number), f"ex{one.number:02}"):
            aliases[alias] = one
    if stem in aliases:
        return aliases[stem]
    if stem.isdigit():
        raise UnknownExercise(f"no exercise {wanted}; they are numbered 1 to {len(exercises())}.")
    near = difflib.get_close_matches(stem, aliases, n=1, cutoff=0.0)[0]
    raise UnknownExercise(f"no exercise {wanted!r}; did you mean {aliases[near].name}?")


def load(exercise, folder=FOLDER):
    """The reader's function, wrapped: what it raises arrives as ReaderError with its line, or as NotStarted."""
    path = pathlib.Path(folder) / exercise.file_name
    try:
        source = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ReaderError(f"{path.name} is not there; git restore brings the empty exercise back") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ReaderError(f"{path.name} cannot be read: {error}") from None
    module = types.ModuleType(f"chapters.exercises.{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # a dataclass in the file looks its module up
    guarded(lambda: exec(compile(source, str(path), "exec"), module.__dict__), path)
    function = module.__dict__.get(exercise.name)
    if not callable(function):
        raise ReaderError(f"{path.name} defines no function {exercise.name}")
    return lambda *arguments: guarded(lambda: function(*arguments), path)


def guarded(call, path):
    """call(), with every error told as one of the reader's lines."""
    try:
        return call()
    except NotImplementedError:
        raise NotStarted from None
    except SyntaxError as error:
        if error.filename != str(path):
            raise ReaderError(f"a file it imports is broken: {error}") from None
        line = (error.text or "").strip()
        raise ReaderError(f"line {error.lineno}: {type(error).__name__}: {error.msg}\n    {line}") from None
    except (Exception, SystemExit) as error:
        theirs = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        where = f"line {theirs[-1].lineno}: " if theirs else ""
        line = f"\n    {theirs[-1].line}" if theirs and theirs[-1].line else ""
        raise ReaderError(f"{where}{type(error).__name__}: {error}{line}") from None
