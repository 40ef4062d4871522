"""Two worker processes that take turns, as the benchmarks use them."""

import os
import sys
import textwrap
from pathlib import Path

import pytest

from benchmarks.turns import Child, peak_memory, take_turns


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A worker that notes who was asked what in one shared file, and ends early when told to."""
    text = f"""
        import os, sys
        from benchmarks.turns import serve

        def answer(line):
            if line == "end":
                sys.exit(3)
            with open({str(tmp_path / "log")!r}, "a", encoding="utf-8") as file:
                file.write(sys.argv[1])
            return [line, os.environ["OMP_NUM_THREADS"], os.environ["OPENBLAS_NUM_THREADS"]]

        serve(answer)
    """
    (tmp_path / "a_worker.py").write_text(textwrap.dedent(text), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{Path(__file__).parents[1]}")
    return "a_worker"


def test_the_order_reverses_every_round(module, tmp_path):
    with Child(module, "a", threads=3) as a, Child(module, "b", threads=3) as b:
        replies = take_turns({"a": a, "b": b}, "hello", 3)
    assert replies == {name: [["hello", "3", "3"]] * 3 for name in "ab"}
    assert (tmp_path / "log").read_text(encoding="utf-8") == "abbaab"
    assert a.process.returncode == b.process.returncode == 0


def test_a_worker_that_ends_early_is_an_error(module):
    with Child(module, "a", threads=1) as child, pytest.raises(RuntimeError, match=r"a_worker a ended early .* 3"):
        child.ask("end")


@pytest.mark.skipif(sys.platform == "win32", reason="needs the resource module")
def test_peak_memory_grows_with_what_was_held():
    before = peak_memory()
    held = bytearray(64 * 1024 * 1024)
    held[::4096] = b"x" * len(held[::4096])
    del held
    assert peak_memory() >= max(before, 64 * 1024)
