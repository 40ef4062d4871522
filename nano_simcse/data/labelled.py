"""Sentences with a class each, for transfer probes."""

import os
from typing import NamedTuple

from nano_simcse.data.records import at_line, columns, filled, fits, quoted, records, sentence

TEXT = ("sentence", "text")  # names of the column of sentences, first choice first


class Labelled(NamedTuple):
    """A sentence and the name of its class."""

    label: str
    sentence: str


def read_labelled(path: str | os.PathLike) -> list[Labelled]:
    """Rows of a .tsv, .csv or .jsonl file (each also .gz) with the columns or keys label and sentence (or text).

    A first line that names both is a header, and further columns are ignored; without one there must be two columns,
    label first. JSON labels may be numbers or true and false. Raises InputError, naming the line, for a wrong number
    of columns, an empty cell or broken JSON, and as `read_sentences` does.
    """
    rows, names = [], None
    for number, row in records(path):
        if isinstance(row, list) and names is None and not rows:
            heading = [str(cell).strip().lower() for cell in row]
            if _columns(heading):
                names = heading
                continue
        if isinstance(row, list) and names:
            row = dict(zip(names, fits(path, number, row, len(names)), strict=True))
        if isinstance(row, dict):
            wanted = _columns(row)
            if wanted is None:
                raise at_line(path, number, f"the keys {quoted(row)}; expected {EXPECTED}")
            row = [row[name] for name in wanted]
        if len(row) != 2:
            raise at_line(path, number, f"{columns(len(row))}; expected 2 (label, sentence), or a first "
                             "line that names label and sentence")  # fmt: skip
        rows.append(Labelled(_label(path, number, row[0]), sentence(path, number, row[1])))
    return filled(path, rows, f"no labelled sentence; expected {EXPECTED}")


EXPECTED = "label and sentence (or text)"


def _columns(names):
    text = next((name for name in TEXT if name in names), None)
    return ("label", text) if text and "label" in names else None


def _label(path, number, value) -> str:
    if isinstance(value, str | int | float) and (label := str(value).strip()):
        return label
    raise at_line(path, number, f"{value!r} where a label was expected")
