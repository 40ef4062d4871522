"""Text files in, checked rows out: sentences, training pairs and triples, and rated STS pairs.

Lines end at "\\n" alone (a "\\r" before it is dropped), as they do for every tool that counts lines; the other
characters Unicode calls line breaks are text. A name that ends in .gz is decompressed on the way.
"""

import csv
import gzip
import json
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from nano_simcse.errors import InputError

KINDS = {2: "pairs", 3: "triples"}
LONGEST_CELL = 2**31 - 1  # characters of a .csv cell; the csv module stops at 131,072 unless told

# Column names of the published sets (SimCSE, sentence-transformers, NLI), and what each column is.
ROLES = {
    "anchor": ("anchor", "sent0", "sentence1", "premise", "summary"),
    "positive": ("positive", "sent1", "sentence2", "entailment", "hypothesis", "description"),
    "negative": ("negative", "hard_neg", "contradiction"),
}


class STSPair(NamedTuple):
    """Two sentences and how alike people found them; `subset` is "" where the file names none."""

    subset: str
    sentence1: str
    sentence2: str
    score: float


@dataclass(frozen=True)
class TrainingText:
    """kind "sentences": rows are strings; "pairs": (anchor, positive); "triples": (anchor, positive, negative)."""

    kind: str
    rows: list


def read_sentences(path: str | os.PathLike) -> list[str]:
    """The non-blank lines of a text file, without white space at the ends.

    Raises InputError for a file that is missing, not UTF-8, or without text.
    """
    found = [text for _, line in read_lines(path) if (text := line.strip())]
    return _filled(path, found, "no usable sentence; expected one sentence a line")


def read_training_file(path: str | os.PathLike) -> TrainingText:
    """Read text to train on; the name tells the form (each may be followed by .gz).

    .tsv            two or three columns, tab separated, no quoting
    .csv            two or three columns, quoted as in RFC 4180
    .jsonl, .json   one list of two or three strings a line, or one object with the keys in ROLES
    anything else   one sentence a line

    A first line that names an anchor and a positive column (ROLES) is a header: columns are then taken by
    name and others are ignored. Raises InputError, naming the line, for a wrong number of columns, an empty
    cell or broken JSON, and as `read_sentences` does.
    """
    if _form(path) == "text":
        return TrainingText("sentences", read_sentences(path))
    rows, names = [], None
    for number, row in _records(path):
        if isinstance(row, dict):
            wanted = _roles(row)
            if wanted is None:
                raise _at(path, number, f"the keys {_listed(row)}; expected anchor and positive, or {ALSO_KNOWN}")
            cells = [row[key] for key in wanted]
        elif not rows and names is None and _form(path) != "jsonl" and (wanted := _roles(row)):
            names = [cell.strip().lower() for cell in row]
            places = [names.index(name) for name in wanted]
            continue
        elif names is not None:
            cells = [_fits(path, number, row, len(names))[place] for place in places]
        else:
            cells = row
        if len(cells) not in KINDS or (rows and len(cells) != len(rows[0])):
            expected = len(rows[0]) if rows else "2 (anchor, positive) or 3 (and a hard negative)"
            raise _at(path, number, f"{_columns(len(cells))}; expected {expected}")
        rows.append(tuple(_text(path, number, cell) for cell in cells))
    _filled(path, rows, "no usable row; expected pairs or triples of sentences")
    return TrainingText(KINDS[len(rows[0])], rows)


def read_training_files(paths: Sequence[str | os.PathLike]) -> TrainingText:
    """The rows of several files of one kind, in order; raises InputError naming two files whose kinds differ."""
    if not paths:
        raise InputError("no training file given; expected at least one")
    texts = [read_training_file(path) for path in paths]
    for path, text in zip(paths, texts, strict=True):
        if text.kind != texts[0].kind:
            raise InputError(
                f"{paths[0]} holds {texts[0].kind} and {path} holds {text.kind}; expected files of one kind"
            )
    return TrainingText(texts[0].kind, [row for text in texts for row in text.rows])


def read_sts(path: str | os.PathLike) -> list[STSPair]:
    """Read rated sentence pairs: columns (or keys) sentence1, sentence2, score and, optionally, subset.

    .tsv, .csv, .jsonl, each also .gz; .tsv and .csv begin with a line that names the columns. Scores may be on
    any scale. Raises InputError, naming the line, for a missing column, a wrong number of cells, or a score
    that is not a finite number.
    """
    pairs, names = [], None
    for number, row in _records(path):
        heading = isinstance(row, list) and names is None
        if heading:
            names = [str(cell).strip().lower() for cell in row]
        keys = names if isinstance(row, list) else row.keys()
        if not {"sentence1", "sentence2", "score"}.issubset(keys):
            found = f"the names {_listed(keys)}" if keys else "no names"
            raise _at(path, number, f"{found}; expected sentence1, sentence2, score (and subset)")
        if heading:
            continue
        if isinstance(row, list):
            row = dict(zip(names, _fits(path, number, row, len(names)), strict=True))
        first, second = (_text(path, number, row[side]) for side in ("sentence1", "sentence2"))
        subset = str(row.get("subset") or "").strip()
        pairs.append(STSPair(subset, first, second, _score(path, number, row["score"])))
    return _filled(path, pairs, "no rated pair; expected sentence1, sentence2, score")


def read_lines(path: str | os.PathLike) -> Iterator[tuple[int, str]]:
    """(line number from 1, text without its line end) for every line of a UTF-8 file; a BOM is dropped.

    Raises InputError for a file that is missing, a folder, unreadable, cut short (.gz), or not UTF-8, naming
    the line and the byte offset from the start of the (decompressed) file.
    """
    path = _expanded(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; expected a text file")
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else open(path, "rb") as stream:
            for number, text in decoded_lines(stream, path):
                yield number, text
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; expected a text file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is cut short or not gzip, after line {number}: {error}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


def decoded_lines(stream: Iterable[bytes], name) -> Iterator[tuple[int, str]]:
    """As `read_lines`, from an open binary stream, which the InputError for a byte that is not UTF-8 calls `name`."""
    offset = 0
    for number, raw in enumerate(stream, 1):
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            where = f"line {number}, byte offset {offset + error.start}"
            raise InputError(f"{name} is not UTF-8: byte 0x{raw[error.start]:02x} at {where}") from None
        if number == 1:
            text = text.removeprefix("\ufeff")
        yield number, text.removesuffix("\n").removesuffix("\r")
        offset += len(raw)


def _expanded(path: str | os.PathLike) -> Path:
    # os.path leaves "~nobody" as it is, where Path.expanduser would raise.
    return Path(os.path.expanduser(path))


def _form(path: str | os.PathLike) -> str:
    suffix = Path(str(path).lower().removesuffix(".gz")).suffix
    return {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".json": "jsonl", ".ndjson": "jsonl"}.get(suffix, "text")


def _records(path: str | os.PathLike) -> Iterator[tuple[int, list | dict]]:
    """(line number, cells or JSON value) for every line that is not blank."""
    form = _form(path)
    if form == "text":
        raise InputError(f"{path} has no columns; expected a .tsv, .csv or .jsonl file")
    lines = read_lines(path)
    if form == "csv":
        # A quoted cell may span lines: the reader is given the line ends, and says where it is.
        reader = csv.reader((line + "\n" for _, line in lines), strict=True)
        usual = csv.field_size_limit(LONGEST_CELL)
        try:
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    yield reader.line_num, cells
        except csv.Error as error:
            raise _at(path, reader.line_num, f"broken CSV ({error})") from None
        finally:
            csv.field_size_limit(usual)
        return
    for number, line in lines:
        if not line.strip():
            continue
        if form == "tsv":
            yield number, line.split("\t")
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _at(path, number, f"broken JSON ({getattr(error, 'msg', error)}); {ONE_A_LINE}") from None
        if not isinstance(value, list | dict):
            raise _at(path, number, f"{line[:40]!r}; expected a list of strings or an object")
        if isinstance(value, list) and any(isinstance(cell, list | dict) for cell in value):
            raise _at(path, number, f"a list of rows; {ONE_A_LINE}")
        yield number, value


ONE_A_LINE = "expected one JSON object or list a line"
ALSO_KNOWN = "sent0 and sent1, sentence1 and sentence2, premise and entailment"


def _roles(names: Sequence[str] | dict) -> list[str] | None:
    """The names to take, in the order anchor, positive(, negative), or None when these are not column names."""
    known = {name.strip().lower() if isinstance(names, list) else name for name in names if isinstance(name, str)}
    taken = [[name for name in ROLES[role] if name in known] for role in ROLES]
    if not taken[0] or not taken[1]:
        return None
    return [found[0] for found in taken if found]


def _fits(path, number: int, row: list, width: int) -> list:
    if len(row) != width:
        raise _at(path, number, f"{_columns(len(row))}; expected {width} as in the header")
    return row


def _text(path, number: int, value) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _at(path, number, f"{value!r} where a sentence was expected")
    return value.strip()


def _score(path, number: int, value) -> float:
    try:
        score = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        raise _at(path, number, f"score {value!r}; expected a finite number")
    return score


def _filled(path, rows: list, complaint: str) -> list:
    if not rows:
        raise InputError(f"{path} has {complaint}" if os.path.getsize(_expanded(path)) else f"{path} is empty")
    return rows


def _at(path, number: int, what: str) -> InputError:
    return InputError(f"{path}, line {number}: {what}")


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def _listed(names) -> str:
    return ", ".join(repr(name) for name in list(names)[:6]) or "nothing"
