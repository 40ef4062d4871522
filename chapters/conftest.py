"""pytest collects every check of every chapter as its own test item.

A chapter is run once while it is collected. Each check and each erratum becomes an item named
"chapter: label"; one more item per chapter says that it ran to its end.
"""

import re

import pytest
from lesson import runner
from lesson.records import CheckFailed

_OPERATOR = re.compile(r"(\(|\)|\band\b|\bor\b|\bnot\b)")


def pytest_configure(config):
    """Let -k take a phrase: `-k "row 1"` selects the checks whose label holds those words in that order."""
    config.option.keyword = _phrases(config.option.keyword)


def pytest_collect_file(file_path, parent):
    if runner.is_chapter(file_path) and not parent.session.isinitpath(file_path):
        return ChapterFile.from_parent(parent, path=file_path)


def pytest_pycollect_makemodule(module_path, parent):
    """A chapter named on the command line would otherwise be collected as a module of test functions."""
    if runner.is_chapter(module_path):
        return ChapterFile.from_parent(parent, path=module_path)


class ChapterFile(pytest.File):
    """A chapter; its items are what it claims."""

    def collect(self):
        result = runner.run(self.path)
        for record in result.records:
            if record.kind in ("check", "erratum"):
                name = f"{result.name}: {record.label}"
                yield ClaimItem.from_parent(self, name=name, line=record.line, problem=record.problem)
        name = f"{result.name}: runs to its end"
        yield ClaimItem.from_parent(self, name=name, line=1, problem=result.error)


class ClaimItem(pytest.Item):
    """One claim, already decided when the chapter ran."""

    def __init__(self, *, line, problem, **rest):
        super().__init__(**rest)
        self.line = line
        self.problem = problem
        self.extra_keyword_matches.add(_squash(self.name))

    def runtest(self):
        if self.problem:
            raise CheckFailed(self.problem)

    def repr_failure(self, excinfo, style=None):
        return f"{self.path.name}, line {self.line}: {self.name}\n{excinfo.value}"

    def reportinfo(self):
        return self.path, self.line - 1, self.name


def _phrases(expression):
    """Join the words between the operators of a -k expression, as the items' extra keywords are joined."""
    parts = _OPERATOR.split(expression or "")
    return " ".join(part if _OPERATOR.fullmatch(part) else _squash(part.strip()) for part in parts).strip()


def _squash(text):
    return re.sub(r"[^\w:+\-.\[\]\\/]", "_", text)
