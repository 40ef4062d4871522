"""Every name and keyword that the package uses on `xp` exists in CuPy, by the committed table."""

import ast
import json
from pathlib import Path

import pytest

import nano_simcse

from . import make_spec
from .meter import SPEC

PACKAGE = Path(nano_simcse.__file__).parent
MODULES = ("xp", "cupy")  # names that hold the array library
ARRAY_ONLY = ("sum", "mean", "max", "min", "argmax", "argmin", "any", "all", "prod", "std", "var", "astype", "take",
              "clip", "argsort", "cumsum", "reshape", "ravel")  # methods no other type here has  # fmt: skip


def path_of(node):
    """["linalg", "norm"] for the expression xp.linalg.norm; None for anything not reached from the library."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return names[::-1] if isinstance(node, ast.Name) and node.id in MODULES and names else None


def lookup(names):
    """(exists, keywords or kind) of a path below the library, by the table; what it does not describe exists."""
    modules, methods = SPEC["modules"], SPEC["ufunc_methods"]
    if names[0] == "cuda":
        return True, None
    if names[0] in modules and len(names) > 1:
        return names[1] in modules[names[0]], modules[names[0]].get(names[1])
    if names[0] in ("newaxis", *modules):
        return True, None
    if names[0] not in modules[""]:
        return False, None
    if len(names) > 1 and names[1] in methods:
        return methods[names[1]] is None or names[0] in methods[names[1]], None
    return True, modules[""][names[0]]


def faults(source, name="<source>"):
    """["file:line: xp.foo is not in CuPy", ...] of a Python text."""
    found = []
    for node in ast.walk(ast.parse(source, name)):
        if isinstance(node, ast.Attribute) and (names := path_of(node)) and not lookup(names)[0]:
            found.append(f"{name}:{node.lineno}: xp.{'.'.join(names)} is not in CuPy {SPEC['version']}")
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        names, method = path_of(node.func), node.func.attr
        allowed = lookup(names)[1] if names else SPEC["ndarray"].get(method) if method in ARRAY_ONLY else None
        if not names and _starts_at(node.func, "np"):
            continue  # a host function
        allowed = ["out", "dtype", "casting"] if allowed == "ufunc" else allowed
        for keyword in node.keywords:
            if isinstance(allowed, list) and keyword.arg and keyword.arg not in allowed:
                shown = f"xp.{'.'.join(names)}" if names else f".{method}"
                found.append(f"{name}:{node.lineno}: {shown}({keyword.arg}=) is not in CuPy {SPEC['version']}")
    return found


def _starts_at(node, name):
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id == name


def numerical_files():
    """The files of the package that work on arrays of either library."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    return {path: text for path, text in texts.items() if "array_module" in text or "import cupy" in text}


def test_everything_used_on_xp_exists_in_cupy():
    found = [fault for path, text in numerical_files().items() for fault in faults(text, path.name)]
    assert not found, "\n".join(found)


def test_the_check_reads_the_files_that_matter():
    names = {path.name for path in numerical_files()}
    assert {"attention.py", "layer_norm.py", "gelu.py", "info_nce.py", "masks.py", "optim.py", "backend.py"} <= names
    uses = sum(bool(path_of(node)) for text in numerical_files().values() for node in ast.walk(ast.parse(text))
               if isinstance(node, ast.Attribute))  # fmt: skip
    assert uses > 80


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("xp.vecdot(a, b)", "xp.vecdot is not in CuPy"),
        ("xp.linalg.vector_norm(a)", "xp.linalg.vector_norm is not in CuPy"),
        ("xp.exp(a, where=keep)", "xp.exp(where=) is not in CuPy"),
        ("xp.sum(a, initial=0)", "xp.sum(initial=) is not in CuPy"),
        ("a.sum(where=keep)", ".sum(where=) is not in CuPy"),
        ("xp.maximum.reduceat(a, b)", "xp.maximum.reduceat is not in CuPy"),
        ("xp.subtract.at(a, i, b)", "xp.subtract.at is not in CuPy"),
        ("xp.clip(a, min=0)", "xp.clip(min=) is not in CuPy"),
        ("cupy.block([a])", "xp.block is not in CuPy"),
    ],
)
def test_the_check_finds(line, message):
    assert len(faults(line)) == 1 and message in faults(line)[0]


def test_the_check_lets_pass():
    lines = ("xp.add.at(a, i, b)", "xp.linalg.norm(a, axis=0)", "a.sum(axis=0)", "np.sum(a, where=b)", "xp.float32(1)")
    assert faults("\n".join(lines)) == []


def test_the_table_is_the_one_of_the_installed_cupy():
    pytest.importorskip("cupy", reason="CuPy is not installed (pip install cupy-cuda13x); the committed table is used")
    table = make_spec.read_cupy()
    if table["version"].split(".")[:2] != SPEC["version"].split(".")[:2]:
        pytest.skip(f"the table is of CuPy {SPEC['version']}, installed is {table['version']}")
    assert json.loads(make_spec.as_text(table)) == SPEC
