"""A chapter file as its `# %%` cells, and what a cell changed."""

import ast
import hashlib
import itertools
import re
import types
from dataclasses import dataclass

import numpy as np

_MARK = re.compile(r"^# ?%%(.*)$")


@dataclass(frozen=True)
class Cell:
    """One cell: its title, its first line in the file, its text, and its compiled statements (or None)."""

    title: str
    line: int
    text: str
    code: types.CodeType | None

    @property
    def is_prose(self):
        """No statement, or nothing but the docstring of the chapter."""
        return self.code is None or self.text.startswith('"""')

    @property
    def words(self):
        """The comment lines that stand before the first statement, without their sign."""
        lines = self.text.splitlines()
        lines = lines[1:] if _MARK.match(lines[0]) else lines
        leading = itertools.takewhile(lambda line: not line or line.startswith("#"), lines)
        return [line.removeprefix("#").removeprefix(" ").rstrip() for line in leading if line]


def is_chapter(path):
    """Whether a file is a chapter by its name: chNN_name.py."""
    return re.fullmatch(r"ch\d\d_\w+\.py", path.name) is not None


def split(path):
    """The cells of a chapter, in order; statements keep their line numbers, so breakpoints hold."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    marks = [(i, m.group(1)) for i, line in enumerate(lines, 1) if (m := _MARK.match(line))]
    starts = [(1, ""), *marks] if not marks or marks[0][0] > 1 else marks
    ends = [start for start, _ in starts[1:]] + [len(lines) + 1]
    tree = ast.parse(source, filename=str(path))
    cells = []
    for (start, title), end in zip(starts, ends, strict=True):
        body = [node for node in tree.body if start <= node.lineno < end]
        code = compile(ast.Module(body, []), str(path), "exec") if body else None
        text = "\n".join(lines[start - 1 : end - 1]).rstrip()
        if text:
            cells.append(Cell(title.replace("[markdown]", "").strip(), start, text, code))
    return cells


def snapshot(namespace):
    """A fingerprint per name, to tell afterwards which values a cell made or changed in place."""
    return {name: _fingerprint(value) for name, value in namespace.items() if _is_value(name, value)}


def changed(before, namespace):
    """The (name, value) pairs of namespace that are new or differ from the snapshot."""
    return [
        (name, value)
        for name, value in namespace.items()
        if _is_value(name, value) and before.get(name) != _fingerprint(value)
    ]


def describe(name, value, width=100):
    """One value in a few lines: arrays with shape, type and compact content."""
    if isinstance(value, np.ndarray):
        shown = np.array2string(
            value, threshold=48, edgeitems=3, max_line_width=width, formatter={"float_kind": _six_digits(value)}
        )
        head = f"{name}  {'x'.join(map(str, value.shape)) or 'number'} {value.dtype}"
        return f"{head}  {shown}" if "\n" not in shown else head + "\n" + _indent(shown)
    if isinstance(value, types.FunctionType):
        arguments = value.__code__.co_varnames[: value.__code__.co_argcount]
        return f"{name}({', '.join(arguments)})  defined"
    text = f"{value:.10g}" if isinstance(value, float) else repr(value)
    text = " ".join(text.split())
    return f"{name}  {text if len(text) <= width else text[: width - 3] + '...'}"


def _six_digits(value):
    """Six significant digits for every entry, so that 2e-9 beside 1 does not read as 0; short arrays are aligned."""
    wide = 11
    if value.dtype.kind == "f" and 0 < value.size <= 48:
        wide = max(len(f"{x:.6g}") for x in value.ravel().tolist())
    return lambda x: f"{x + 0.0:{wide}.6g}"  # adding 0 turns -0 into 0


def _indent(text):
    return "\n".join("    " + line for line in text.splitlines())


def _is_value(name, value):
    return not name.startswith("_") and not isinstance(value, types.ModuleType | type)


def _fingerprint(value):
    if isinstance(value, np.ndarray) and value.dtype != object and value.nbytes <= 8_000_000:
        return id(value), hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=8).digest()
    if isinstance(value, list | dict | set) and len(value) <= 1000:
        return id(value), repr(value)[:10_000]
    return id(value)
