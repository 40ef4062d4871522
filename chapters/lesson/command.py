"""The command line of the chapters."""

import argparse
import os
import sys
import time

from lesson import errata_page, figure_files, runner
from lesson.stepper import Quit, Stepper

INTERRUPTED = 130


def main(argv=None):
    """Do what the arguments ask; return 0, 1 when anything failed, 2 for wrong usage, 130 after Ctrl-C."""
    args = _arguments(argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    if args.full:
        os.environ["NANO_SIMCSE_FULL"] = "1"
    try:
        chosen = runner.find(args.chapter)
        return _dispatch(args, chosen)
    except runner.UnknownChapter as error:
        print(f"chapters: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe (head, less) left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _arguments(argv):
    ask = argparse.ArgumentParser(prog="python -m chapters", description="The lesson, executed and checked.")
    ask.add_argument("chapter", nargs="*", help="5, ch05, ch05_temperature or temperature (default: all)")
    ask.add_argument("--step", action="store_true", help="pause at each cell: its code, then its values")
    ask.add_argument("--list", action="store_true", help="show every check with its value")
    ask.add_argument("--figures", action="store_true", help="draw figures/*.png and .svg")
    ask.add_argument("--errata", action="store_true", help="write ERRATA.md")
    ask.add_argument("--full", action="store_true", help="run the long studies too")
    ask.add_argument("--quiet", action="store_true", help="only failures and the last line")
    return ask.parse_args(argv)


def _dispatch(args, chosen):
    if args.step:
        return _step(chosen)
    if args.figures:
        for path in figure_files.write_all():
            if not args.quiet:
                print(path.relative_to(runner.ROOT))
        return 0
    loud = bool(args.chapter) and not (args.list or args.quiet or args.errata)
    started = time.perf_counter()
    results = [_run(path) for path in chosen] if loud else list(runner.run_all(chosen))
    seconds = time.perf_counter() - started
    if args.list:
        for result in results:
            print(f"\n{result.name}: {result.title}")
            print(*result.records, sep="\n")
    _report(results, args.quiet, shown=loud or args.list, seconds=seconds)
    passed = all(result.passed for result in results)
    if args.errata:
        if args.chapter or not passed:
            print("ERRATA.md is written only from a run of all chapters that passes", file=sys.stderr)
            return 2 if passed else 1
        errata_page.write(results)
        print("wrote ERRATA.md")
    return 0 if passed else 1


def _run(path):
    print(f"\n{path.stem}: {runner.title_of(path)}")
    return runner.run(path, echo=True)


def _step(chosen):
    results = []
    for path in chosen:
        print(f"\n{path.stem}: {runner.title_of(path)}")
        try:
            results.append(runner.run(path, pause=Stepper(path.stem)))
        except Quit:
            print("bye")
            return 0
    _report(results, False, shown=True, seconds=sum(result.seconds for result in results))
    return 0 if all(result.passed for result in results) else 1


def _report(results, quiet, shown, seconds):
    """Failures, then one line a chapter and the total; seconds is the time on the wall."""
    for result in results:
        if not shown:
            for record in result.failures:
                print(f"{result.name}, line {record.line}\n{record}")
        if result.error:
            print(f"{result.name} stopped:\n{result.error}\n")
    rows = [_row(result.name, [result], result.seconds) for result in results]
    rows.append(_row("total", results, seconds))
    heads = ("chapter", "checks passed", "errata", "quoted", "seconds", "")
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    if not quiet:
        print()
        for row in [heads, *rows[:-1]]:
            print(_aligned(row, widths))
    print(_aligned(rows[-1], widths))


def _row(name, results, seconds):
    checks = [record for result in results for record in result.of_kind("check")]
    errata = sum(len(result.errata) for result in results)
    quoted = sum(len(result.of_kind("quoted")) for result in results)
    failed = sum(len(result.failures) for result in results) + sum(bool(result.error) for result in results)
    return (
        name,
        f"{sum(record.passed for record in checks)} of {len(checks)}",
        str(errata),
        str(quoted),
        f"{seconds:.1f}",
        f"{failed} FAILED" if failed else "ok",
    )


def _aligned(row, widths):
    first, *rest, last = row
    middle = "  ".join(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=False))
    return f"{first.ljust(widths[0])}  {middle}  {last}".rstrip()
