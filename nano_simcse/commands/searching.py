"""nano-simcse search: embeddings and BM25 over a file, or over the documentation of the installed Python."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..checkpoint import read_json
from ..data.docstrings import load_corpus
from ..data.records import read_lines
from ..errors import InputError
from ..files import save_array, user_cache_folder
from ..retrieval import EQUAL_WEIGHT, DenseIndex, LexicalIndex, fuse, lexical_words, standardise, top_k
from ..training.run_folder import newest_run
from .common import json_line, load_model, note

SHOWN = 160  # characters of an answer


def search(arguments):
    """nano-simcse search."""
    if arguments.k < 1:
        raise InputError(f"-k is {arguments.k}; expected at least 1")
    if not arguments.query.strip():
        raise InputError("the query is empty; expected some words")
    encoder = None if arguments.lexical else load_model(arguments)
    passages = _of_file(arguments.corpus) if arguments.corpus else _of_documentation()
    dense = lexical = None
    if not arguments.lexical:
        query = encoder.encode(arguments.query, show_progress_bar=False)
        dense = sum(standardise(DenseIndex(_cached_embeddings(encoder, f)).scores(query)) for f in passages.fields)
    if not arguments.dense:
        words = [LexicalIndex(field).scores(arguments.query) for field in passages.named_fields]
        lexical = sum(standardise(scores) for scores in words)
        if not any(scores.any() for scores in words):
            lexical = np.zeros_like(lexical)
    if dense is None or lexical is None:
        scores = lexical if dense is None else dense
    else:
        scores = fuse(dense, lexical, weight=_dense_weight(arguments))
    _warn_of_empty_query(arguments.query, encoder, lexical)
    answers = []
    for place, i in enumerate(top_k(scores, arguments.k), 1):
        body = " ".join(passages.shown[i].split())
        body = body if len(body) <= SHOWN else body[: SHOWN - 3] + "..."
        print(f"{place:3d}  {scores[i]:7.3f}  {passages.names[i]}\n{'':14}{body}")
        answers.append(
            {"rank": place, "score": float(scores[i]), "name": passages.names[i], "text": passages.shown[i]}
        )
    if arguments.json:
        print(json_line({"query": arguments.query, "answers": answers}))


@dataclass(frozen=True)
class Passages:
    """What is searched: names and texts to show; fields, the texts to compare with, each a list as long as names;
    named_fields, the same for word search, where the name counts as text."""

    names: list
    shown: list
    fields: list
    named_fields: list


def _of_file(corpus):
    lines = [(number, text) for number, line in read_lines(corpus) if (text := line.strip())]
    if not lines:
        raise InputError(f"{corpus} holds no text; expected one a line")
    texts = [text for _, text in lines]
    return Passages([f"line {number}" for number, _ in lines], texts, [texts], [texts])


def _of_documentation():
    """Summaries and whole texts count alike: a short question looks like a summary, and in a long description the
    words that matter are diluted."""
    entries = load_corpus().entries
    names, summaries = [entry.name for entry in entries], [entry.summary for entry in entries]
    fields = [summaries, [f"{entry.summary} {entry.description}".strip() for entry in entries]]
    named = [[f"{n} {text}" for n, text in zip(names, field, strict=True)] for field in fields]
    return Passages(names, summaries, fields, named)


def _dense_weight(arguments):
    """Weight of the dense scores: as asked for, else as the run chose on its validation pairs, else one half."""
    if arguments.weight is not None:
        return arguments.weight
    result = Path(os.path.expanduser(arguments.model or newest_run())) / "result.json"
    try:
        weight = read_json(result)["search"]["dense_weight"] if result.exists() else None
    except (KeyError, TypeError, IndexError):
        weight = None  # not a report
    return weight if isinstance(weight, int | float) and 0 <= weight <= 1 else EQUAL_WEIGHT


def _warn_of_empty_query(query, encoder, lexical):
    """Say so where the answers below mean little: nothing in the query can be looked up."""
    if lexical is not None and not lexical.any():
        if lexical_words(query):
            note("no word of the query occurs in the corpus")
        else:
            note("the query holds no word to look up; very common words and signs do not count")
    elif lexical is None:
        tokenizer = encoder.tokenizer
        empty = {tokenizer.cls_id, tokenizer.sep_id, tokenizer.unk_id}
        if empty.issuperset(tokenizer.encode([query], encoder.max_length)[0][0].tolist()):
            note("the query holds no word that the model knows")


def _cached_embeddings(encoder, texts):
    """Embeddings of a corpus, kept in the user's cache under the fingerprints of the model and of the texts."""
    digest = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    file = user_cache_folder() / f"embeddings-{encoder.fingerprint()}-{digest}.npy"
    try:
        x = np.load(file, allow_pickle=False)
        if x.shape == (len(texts), encoder.dimension):
            return x
    except (OSError, ValueError, EOFError):
        pass  # not there, or damaged: it is only a cache
    x = encoder.encode(texts)
    try:
        save_array(file, x)
    except OSError:
        pass  # a cache that cannot be written costs time, not answers
    return x
