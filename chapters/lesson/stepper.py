"""Walk through a chapter cell by cell: the code first, then the values it made."""

import contextlib
import sys

from lesson import cells


class Quit(BaseException):
    """The reader asked to stop. Not an Exception, so that no chapter swallows it."""


class Stepper:
    """Called by the runner for every cell; returns the context in which the cell runs."""

    def __init__(self, chapter, ask=input):
        self.chapter = chapter
        self.ask = ask
        self.free = False  # after "c": no more pauses

    @contextlib.contextmanager
    def __call__(self, cell, number, total, namespace):
        rule = f"--- {self.chapter}  cell {number} of {total}  line {cell.line}"
        print(f"\n{rule} {'-' * max(3, 96 - len(rule))}")
        for offset, line in enumerate(cell.text.splitlines()):
            print(f"{cell.line + offset:>4}  {line}".rstrip())
        before = cells.snapshot(namespace)
        self._pause("Enter goes on" if cell.is_prose else "Enter runs it", number == 1)
        yield
        made = cells.changed(before, namespace) if cell.code is not None else []
        made = [(name, value) for name, value in made if not _imported(value)]
        if made:
            print("\n  values now")
            for name, value in made:
                print("  " + cells.describe(name, value).replace("\n", "\n  "))

    def _pause(self, what, first):
        if self.free:
            return
        hint = f"[{what}, c runs on to the end, q quits] " if first else f"[{what}] "
        sys.stdout.flush()
        try:
            answer = self.ask(hint).strip().lower()
        except EOFError:
            print()
            raise Quit from None
        if answer in ("q", "quit", "exit"):
            raise Quit
        self.free = answer in ("c", "continue")


def _imported(value):
    """Helpers a chapter imports are no values of its own."""
    return callable(value) and not str(getattr(value, "__module__", "")).startswith("chapters.")
