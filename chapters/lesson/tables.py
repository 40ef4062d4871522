"""Tables a reader can follow with a pencil."""

import numpy as np
from lesson import narration
from lesson.records import caller


def table(values, title="", rows=None, columns=None, digits=4):
    """Print a number, a vector (as one row) or a matrix, aligned, with optional names; return values.

    digits: decimals of floats ("e" prints exponents, e.g. "3e"). Integers and booleans print as they are, so
    a keep mask shows as 1 and 0. rows and columns name the rows and the columns.
    """
    array = np.asarray(values)
    grid = np.atleast_2d(array) if array.ndim < 2 else array.reshape(-1, array.shape[-1])
    cells = [[_cell(x, digits) for x in line] for line in grid.tolist()]
    names = [str(r) for r in rows] if rows is not None else [""] * len(cells)
    heads = [str(c) for c in columns] if columns is not None else None
    if len(names) != len(cells) or (heads is not None and len(heads) != grid.shape[1]):
        raise ValueError(f"table {title!r}: {grid.shape} values need as many row and column names")
    lines = [*cells, heads] if heads is not None else cells
    widths = [max(len(line[j]) for line in lines) for j in range(grid.shape[1])]
    left = max(len(n) for n in names)
    narration.reach(caller())
    if title:
        print(f"\n{title}")
    if heads is not None:
        print(_line("", heads, left, widths))
    for name, line in zip(names, cells, strict=True):
        print(_line(name, line, left, widths))
    return values


def _cell(x, digits):
    if isinstance(x, str):
        return x
    if isinstance(x, bool):
        return "1" if x else "0"
    if isinstance(x, int):
        return str(x)
    if x is None:
        return ""
    if isinstance(digits, str):
        return f"{x:.{digits}}"
    text = f"{x:.{digits}f}"
    return text[1:] if float(text) == 0 and text[0] == "-" else text  # no negative zero


def _line(name, cells, left, widths):
    aligned = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
    return f"    {name.ljust(left)}  {aligned}".rstrip()
