"""Every example of a docstring of the package is run: what it prints is what it says."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

import nano_simcse

ROOT = Path(nano_simcse.__file__).parent
MODULES = [
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
    for path in sorted(ROOT.rglob("*.py"))
    if re.search(r"^ *>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of(name):
    found = doctest.DocTestFinder(exclude_empty=True).find(import_module(name))
    examples = [example for case in found for example in case.examples]
    runnable = [example for example in examples if not example.options.get(doctest.SKIP)]
    assert examples, "the module has examples that doctest does not find"
    if not runnable:
        pytest.skip("its examples need a model that somebody has trained")
    printed, runner = [], doctest.DocTestRunner(verbose=False)
    for case in found:
        runner.run(case, out=printed.append)
    assert not runner.failures, "".join(printed)
    assert runner.tries == len(runnable)


def test_the_examples_are_found():
    assert {"nano_simcse.losses.info_nce", "nano_simcse.optim", "nano_simcse.index"} <= set(MODULES)
