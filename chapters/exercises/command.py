"""The command line of the exercises."""

import argparse
import contextlib
import io
import os
import sys

from chapters.exercises import answer_keys, catalogue, grading


def main(argv=None, folder=catalogue.FOLDER):
    """List or grade; returns 0, 1 when a graded exercise is not solved, 2 for an unknown one, 130 after Ctrl-C."""
    ask = argparse.ArgumentParser(
        prog="python -m chapters.exercises",
        description="Exercises with a grader that hints. Without an argument: all of them with their state.",
        epilog="`git restore FILE` empties an exercise again.",
    )
    ask.add_argument("exercise", nargs="*", help="3, ex03 or infonce_grad")
    args = ask.parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        chosen = [catalogue.find(wanted) for wanted in args.exercise]
        if not chosen:
            _list(folder)
            return 0
        grades = [_grade(one, folder) for one in chosen]
        return 0 if all(one.status == "solved" for one in grades) else 1
    except catalogue.UnknownExercise as error:
        print(f"exercises: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of a pipe (head, less) left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _list(folder):
    rows = [("", "exercise", "chapter", "status", "task")]
    for one in catalogue.exercises():
        with contextlib.redirect_stdout(io.StringIO()):  # what a reader's code prints belongs to its own grading
            status = grading.grade(one, answer_keys.KEYS[one.name], folder).status
        rows.append((str(one.number), one.name, str(one.chapter), status, one.title))
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    for row in rows:
        number, name, chapter, status, task = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join((number, name, chapter, status, task)).rstrip())
    solved = sum(row[3] == "solved" for row in rows)
    print(f"{solved} of {len(rows) - 1} solved")


def _grade(one, folder):
    found = grading.grade(one, answer_keys.KEYS[one.name], folder)
    print(f"{one.number} {one.name} (chapter {one.chapter}): {found.status}")
    if found.status == "not started":
        print(f"  The task: chapters/exercises/{one.file_name}")
    for hint in found.hints:
        print("  " + hint.replace("\n", "\n  "))
    return found
