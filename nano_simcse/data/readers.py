"""Text files in, checked rows out: sentences, training pairs and triples, and rated STS pairs."""

import math
import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from nano_simcse.data.records import at_line, columns, filled, fits, form_of, quoted, read_lines, records, sentence
from nano_simcse.errors import InputError

KINDS = {2: "pairs", 3: "triples"}
SCORES = ("score", "similarity_score", "similarity", "relatedness_score")  # what the column of scores is called

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
    return filled(path, found, "no usable sentence; expected one sentence a line")


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
    if form_of(path) == "text":
        return TrainingText("sentences", read_sentences(path))
    rows, names = [], None
    for number, row in records(path):
        if isinstance(row, dict):
            wanted = _roles(row)
            if wanted is None:
                raise at_line(path, number, f"the keys {quoted(row)}; expected anchor and positive, or {ALSO_KNOWN}")
            cells = [row[key] for key in wanted]
        elif not rows and names is None and form_of(path) != "jsonl" and (wanted := _roles(row)):
            names = [cell.strip().lower() for cell in row]
            places = [names.index(name) for name in wanted]
            continue
        elif names is not None:
            cells = [fits(path, number, row, len(names))[place] for place in places]
        else:
            cells = row
        if len(cells) not in KINDS or (rows and len(cells) != len(rows[0])):
            expected = len(rows[0]) if rows else "2 (anchor, positive) or 3 (and a hard negative)"
            raise at_line(path, number, f"{columns(len(cells))}; expected {expected}")
        rows.append(tuple(sentence(path, number, cell) for cell in cells))
    filled(path, rows, "no usable row; expected pairs or triples of sentences")
    if len(rows[0]) == 3 and all(_is_number(row[2]) for row in rows[1:] or rows):  # the first may be a heading
        raise InputError(
            f"{path} has numbers in its third column, where sentences were expected; scores need a first line that "
            "names the columns sentence1, sentence2, score"
        )
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


def is_rated(path: str | os.PathLike) -> bool:
    """Whether a .tsv, .csv or .jsonl file names sentence1, sentence2 and a score in its first line, for `read_sts`.

    Raises InputError for another kind of file, and as `read_lines` does.
    """
    with closing(records(path)) as rows:
        _, row = next(rows, (0, []))
    return _score_name(row if isinstance(row, dict) else [str(cell).strip().lower() for cell in row]) is not None


def read_sts(path: str | os.PathLike) -> list[STSPair]:
    """Read rated sentence pairs: columns (or keys) sentence1, sentence2, score and, optionally, subset.

    .tsv, .csv, .jsonl, each also .gz; .tsv and .csv begin with a line that names the columns. The column of scores may
    have another of the names SCORES; scores may be on any scale. Raises InputError, naming the line, for a missing
    column, a wrong number of cells, or a score that is not a finite number.
    """
    pairs, names = [], None
    for number, row in records(path):
        heading = isinstance(row, list) and names is None
        if heading:
            names = [str(cell).strip().lower() for cell in row]
        keys = names if isinstance(row, list) else row.keys()
        rating = _score_name(keys)
        if rating is None:
            found = f"the names {quoted(keys)}" if keys else "no names"
            raise at_line(path, number, f"{found}; expected sentence1, sentence2, score (and subset)")
        if heading:
            continue
        if isinstance(row, list):
            row = dict(zip(names, fits(path, number, row, len(names)), strict=True))
        first, second = (sentence(path, number, row[side]) for side in ("sentence1", "sentence2"))
        subset = str(row.get("subset") or "").strip()
        pairs.append(STSPair(subset, first, second, _score(path, number, row[rating])))
    return filled(path, pairs, "no rated pair; expected sentence1, sentence2, score")


ALSO_KNOWN = "sent0 and sent1, sentence1 and sentence2, premise and entailment"


def _roles(names: Sequence[str] | dict) -> list[str] | None:
    """The names to take, in the order anchor, positive(, negative), or None when these are not column names."""
    known = {name.strip().lower() if isinstance(names, list) else name for name in names if isinstance(name, str)}
    taken = [[name for name in ROLES[role] if name in known] for role in ROLES]
    if not taken[0] or not taken[1]:
        return None
    return [found[0] for found in taken if found]


def read_texts(path: str | os.PathLike) -> list[str]:
    """Every sentence of a file, whichever of the forms above it has: of pairs and triples, all their texts.

    Raises InputError as the readers do.
    """
    if form_of(path) == "text":
        return read_sentences(path)
    if is_rated(path):
        return [text for pair in read_sts(path) for text in (pair.sentence1, pair.sentence2)]
    return [text for row in read_training_file(path).rows for text in row]


def _score_name(names) -> str | None:
    """What the column of scores is called, None where the names are not those of rated pairs."""
    if not {"sentence1", "sentence2"}.issubset(names):
        return None
    return next((name for name in SCORES if name in names), None)


def _is_number(text) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _score(path, number: int, value) -> float:
    try:
        score = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        raise at_line(path, number, f"score {value!r}; expected a finite number")
    return score
