"""Lines and rows of text files: what every reader of this package stands on.

Lines end at "\\n" alone (a "\\r" before it is dropped), as they do for every tool that counts lines; the other
characters Unicode calls line breaks are text. A name that ends in .gz is decompressed on the way.
"""

import csv
import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from nano_simcse.errors import InputError

LONGEST_CELL = 2**31 - 1  # characters of a .csv cell; the csv module stops at 131,072 unless told
ONE_A_LINE = "expected one JSON object or list a line"


def read_lines(path: str | os.PathLike) -> Iterator[tuple[int, str]]:
    """(line number from 1, text without its line end) for every line of a UTF-8 file; a BOM is dropped.

    Raises InputError for a file that is missing, a folder, unreadable, cut short (.gz), or not UTF-8, naming
    the line and the byte offset from the start of the (decompressed) file.
    """
    path = expanded(path)
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


def expanded(path: str | os.PathLike) -> Path:
    """The path with a leading "~" replaced by the home folder."""
    # os.path leaves "~nobody" as it is, where Path.expanduser would raise.
    return Path(os.path.expanduser(path))


def form_of(path: str | os.PathLike) -> str:
    """"tsv", "csv", "jsonl" or "text", by the name."""
    suffix = Path(str(path).lower().removesuffix(".gz")).suffix
    return {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".json": "jsonl", ".ndjson": "jsonl"}.get(suffix, "text")


def records(path: str | os.PathLike) -> Iterator[tuple[int, list | dict]]:
    """(line number, cells or JSON value) for every line that is not blank."""
    form = form_of(path)
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
            raise at_line(path, reader.line_num, f"broken CSV ({error})") from None
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
            raise at_line(path, number, f"broken JSON ({getattr(error, 'msg', error)}); {ONE_A_LINE}") from None
        if not isinstance(value, list | dict):
            raise at_line(path, number, f"{line[:40]!r}; expected a list of strings or an object")
        if isinstance(value, list) and any(isinstance(cell, list | dict) for cell in value):
            raise at_line(path, number, f"a list of rows; {ONE_A_LINE}")
        yield number, value


def fits(path, number: int, row: list, width: int) -> list:
    """The row, or InputError where it has not as many cells as the header."""
    if len(row) != width:
        raise at_line(path, number, f"{columns(len(row))}; expected {width} as in the header")
    return row


def sentence(path, number: int, value) -> str:
    """The text of a cell without white space at the ends, or InputError where there is none."""
    if not isinstance(value, str) or not value.strip():
        raise at_line(path, number, f"{value!r} where a sentence was expected")
    return value.strip()


def filled(path, rows: list, complaint: str) -> list:
    """The rows, or InputError where there are none."""
    if not rows:
        raise InputError(f"{path} has {complaint}" if os.path.getsize(expanded(path)) else f"{path} is empty")
    return rows


def at_line(path, number: int, what: str) -> InputError:
    """The error for one line of a file."""
    return InputError(f"{path}, line {number}: {what}")


def columns(count: int) -> str:
    """A number of columns in words."""
    return "1 column" if count == 1 else f"{count} columns"


def quoted(names) -> str:
    """The first names, for a sentence about a file."""
    return ", ".join(repr(name) for name in list(names)[:6]) or "nothing"
