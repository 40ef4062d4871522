"""ERRATA.md, written from the erratum calls of the chapters."""

import os
import re
import tempfile

from lesson.runner import ROOT

PATH = ROOT / "ERRATA.md"

_HEAD = """# Errata of the lesson

The lessons are five teaching texts on SimCSE, InfoNCE and CLIP, word2vec and contrastive embeddings, numbered 0 to 4,
which these chapters rework. A place in lesson 0 is given by its chapter, as in "ch. 5".

Written by `python -m chapters --errata` from the chapters themselves; a test fails when this page is stale.
Each line names the check that computes the right value and shows that the lesson's value is not reproduced.
Lines marked with a source correct a figure that the lesson cites and that cannot be computed here.

| lesson | what it says | what is right | the check that proves it |
|---|---|---|---|
"""


def render(results):
    """The page as text: one line per distinct mistake, in the order of the chapters."""
    lines = {}
    for result in results:
        for record in result.of_kind("erratum"):
            lines.setdefault((result.name, record.erratum.key), []).append(record)
    return _HEAD + "".join(_line(chapter, records) for (chapter, _), records in lines.items())


def write(results):
    """Write the page; the old one stays whole until the new one is."""
    handle, name = tempfile.mkstemp(dir=PATH.parent, prefix=".errata-", suffix=".md")
    with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
        file.write(render(results))
    os.chmod(name, 0o644)
    os.replace(name, PATH)


def _line(chapter, records):
    where = next((r.erratum.where for r in records if r.erratum.where), f"ch. {int(chapter[2:4])}")
    where = where if where.startswith("lesson") else f"lesson 0, {where}"
    rights = dict.fromkeys(_right(record) for record in records)  # distinct, in order
    right = f"{'; '.join(rights)}. {records[0].erratum.why}"
    sources = dict.fromkeys(record.erratum.source for record in records if record.erratum.source)
    if sources:
        right += f" Source: {'; '.join(sources)}."
    proof = "; ".join(f"`{chapter}: {record.label}`" for record in records)
    return "| " + " | ".join(_cell(text) for text in (where, records[0].erratum.says, right, proof)) + " |\n"


def _right(record):
    """A number says what it is a number of; a statement in words, or one without a label of its own, stands alone."""
    page = record.erratum
    plain = record.claimed != page.right or record.label in (page.says, page.key)
    return page.right.rstrip(".") if plain else f"{record.label}: {page.right}"


def _cell(text):
    text = re.sub(r"\s+", " ", text.strip()).replace("|", "\\|")
    return re.sub(r"([^.])\.\. ", r"\1. ", text)
