"""The README's example runs and prints what it says; its links and commands exist."""

import contextlib
import io
import re
from pathlib import Path

from nano_simcse.cli import parser

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_stands_below_it():
    code, expected = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == expected
    assert len(code.strip().splitlines()) <= 15


def test_links_lead_somewhere():
    targets = [t for t in re.findall(r"\]\(([^)#]+)\)", README) if not t.startswith("http")]
    assert len(targets) >= 5
    assert [t for t in targets if not (ROOT / t).exists()] == []


def test_every_command_is_in_the_table():
    commands = next(a.choices for a in parser()._actions if a.dest == "command")
    listed = re.findall(r"^\| `(\w+)", README, re.MULTILINE)
    assert sorted(listed) == sorted(commands)


def test_nothing_is_left_to_fill_in():
    assert "@@" not in README
