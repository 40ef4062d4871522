"""The words of a chapter's cells, printed as the chapter reaches them, so that its output can be read alone."""

import functools
import pathlib

from lesson import cells


def announce(cell):
    """Print the title and the leading comment of one cell, if it has any."""
    lines = [f"## {cell.title}"] if cell.title else []
    lines += cell.words
    if lines:
        print("\n" + "\n".join(lines))


def reach(frame):
    """Announce the cells up to the line that a chapter run as a script is at; frame is that of its claim or table.

    The runner announces cells itself, and in a notebook or an editor's cell the words are on the screen already:
    neither runs the file as __main__ under its own name.
    """
    while frame is not None and not _of_script(frame):
        frame = frame.f_back
    waiting = _waiting(frame.f_code.co_filename) if frame is not None else []
    while waiting and waiting[0].line <= frame.f_lineno:
        announce(waiting.pop(0))


def _of_script(frame):
    at_top = frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__main__"
    return at_top and cells.is_chapter(pathlib.Path(frame.f_code.co_filename))


@functools.cache
def _waiting(path):
    """The cells of the script that are still to be announced."""
    return cells.split(pathlib.Path(path))
