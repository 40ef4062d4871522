"""What the commands share: the model they are given, standard input, and JSON."""

import json
import math
import os
import sys
import warnings
from contextlib import contextmanager

from ..data.records import decoded_lines, read_lines
from ..errors import InputError
from ..model import SentenceEncoder
from ..training.run_folder import newest_run


def load_model(arguments):
    """The encoder of --model, or of the newest run."""
    return SentenceEncoder.load(arguments.model or newest_run(), device=arguments.device)


def one_a_line(file):
    """The text of every line of `file` ("-": standard input), so that row i of a result belongs to line i + 1.

    Blank lines at the end are left out. Raises InputError for one before that, naming it, for no text at all, and
    as `read_lines` does.
    """
    name = "standard input" if file == "-" else file
    lines = decoded_lines(sys.stdin.buffer, name) if file == "-" else read_lines(file)
    sentences, blank = [], None
    for number, line in lines:
        text = line.strip()
        if not text:
            blank = blank or number
        elif blank:
            raise InputError(
                f"{name}, line {blank} is blank; encode writes one row a line, so remove it or write some text"
            )
        else:
            sentences.append(text)
    if not sentences:
        raise InputError(f"{name} holds no sentence; expected one a line")
    return sentences


def note(text):
    """One line on standard error that is no error."""
    print(f"nano-simcse: note: {text}", file=sys.stderr)


def say(line):
    """Print a line now, although the work goes on, and goes on where nobody reads standard output any more."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")


def json_line(value):
    """One line of JSON; nan and infinity, which JSON lacks, become null."""

    def clean(x):
        if isinstance(x, dict):
            return {k: clean(v) for k, v in x.items()}
        if isinstance(x, list | tuple):
            return [clean(v) for v in x]
        return None if isinstance(x, float) and not math.isfinite(x) else x

    return json.dumps(clean(value), ensure_ascii=False)


@contextmanager
def each_note_once():
    """Warnings shown as before, but none a second time."""
    with warnings.catch_warnings():
        show, shown = warnings.showwarning, set()

        def show_once(message, *where, **options):
            if str(message) not in shown:
                shown.add(str(message))
                show(message, *where, **options)

        warnings.showwarning = show_once
        yield
