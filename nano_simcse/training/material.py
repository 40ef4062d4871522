"""What a run trains on and what it is judged by: texts, examples, and pairs held out of both."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..data.docstrings import load_corpus
from ..data.held_out import Split, hold_out
from ..data.prose import same_text
from ..data.readers import is_rated, read_training_files
from ..errors import InputError
from .config import TrainingConfig

HELD_OUT_SEED = 0  # the same pairs for every run, so that runs compare
LEAST_WORDS = 8  # of a sentence that is cut in half to make a held-out pair


class NoPairs(InputError):
    """Pairs were asked of text that has none, or none that are said to belong together."""


@dataclass(frozen=True)
class Material:
    """origin: where the text comes from, in words; task: what recall measures, in words; positives: resolved mode;
    texts: distinct training texts; examples: (n, V) numbers of texts; test, validation: held-out (query, target)."""

    origin: str
    task: str
    positives: str
    texts: list
    examples: object
    test: list
    validation: list

    def require(self, config):
        """Raise InputError where this text does not suffice for the run: too few examples, or options for hard
        negatives it does not have."""
        count, held = len(self.examples), len(self.test) + len(self.validation)
        if count < config.batch:
            besides = f" besides the {held} set aside to measure with" if held else ""
            raise InputError(
                f"there are {count} different training examples{besides}, fewer than a batch of {config.batch}; give "
                f"more text or a smaller batch"
            )
        if config.log_weight and self.examples.shape[1] < 3:
            raise InputError(f"log_weight is {config.log_weight}, but the text has no hard negatives to weigh")


def gather(positives, files=(), progress=None, held_out=TrainingConfig.held_out):
    """Material from the given files, or from the docstrings of the installed scientific stack where there are none.

    positives: "dropout", "pairs", "crop", or None for pairs where the files hold pairs and dropout otherwise;
    held_out: pairs set aside at most, 10 of 13 to report on, the rest to choose the best checkpoint by.
    Raises InputError for unusable files, or pairs asked of plain sentences.
    """
    test = held_out * 10 // 13
    if files:
        return _from_files(positives, files, test, held_out - test)
    return _from_docstrings(positives or "dropout", progress, test, held_out - test)


def _from_docstrings(positives, progress, test, validation):
    corpus = load_corpus(progress=progress)
    if test + validation:
        split = hold_out(corpus, test + validation, HELD_OUT_SEED)
    else:
        split = Split(corpus.sentences, corpus.pairs, [])
    held = split.held_out_pairs
    if positives == "dropout":
        columns = [(sentence,) for sentence in split.train_sentences]
    elif positives == "pairs":
        columns = split.train_pairs
    else:
        columns = [(" ".join(pair),) for pair in split.train_pairs]
    versions = ", ".join(f"{name} {version}" for name, version in corpus.versions.items())
    origin = f"docstrings of {versions}: {len(corpus.sentences):,} sentences, {len(corpus.pairs):,} pairs"
    return Material(
        origin, "a function's description from its summary", positives, *_number(columns), held[:test], held[test:]
    )


def _from_files(positives, files, most_test, most_validation):
    text = read_training_files(files)
    rows = [tuple(row) if isinstance(row, list | tuple) else (row,) for row in text.rows]
    if text.kind == "sentences":
        if positives == "pairs":
            raise NoPairs(f"positives are pairs, but {files[0]} holds plain sentences; use dropout or crop")
        rows = list(dict.fromkeys(rows))
        candidates = [row for row in rows if len(row[0].split()) >= LEAST_WORDS]
        chosen, validation = _choose(candidates, len(rows), most_test, most_validation)
        held, task = [row[0] for row in (*chosen, *validation)], "the second half of a sentence from its first"
        test, validation = [_halves(row[0]) for row in chosen], [_halves(row[0]) for row in validation]
    else:
        chosen, validation = _choose(rows, len(rows), most_test, most_validation)
        test, validation = [row[:2] for row in chosen], [row[:2] for row in validation]
        held, task = [text for pair in (*test, *validation) for text in pair], "the positive of a held-out anchor"
        rated = next((file for file in files if is_rated(file)), None)
        if positives in (None, "pairs") and rated:
            raise NoPairs(
                f"{rated} has scores, and as positives all its pairs would count alike, those scored low too; keep the "
                "pairs that belong together, without the score, or use dropout or crop"
            )
    seen = {same_text(text) for text in held}
    rows = [row for row in rows if not any(same_text(text) in seen for text in row)]
    positives = positives or ("dropout" if text.kind == "sentences" else "pairs")
    if positives != "pairs":
        rows = list(dict.fromkeys((text,) for row in rows for text in row))
    names = ", ".join(Path(file).name for file in files)
    origin = f"{names}: {len(text.rows):,} {text.kind}"
    return Material(origin, task, positives, *_number(rows), test, validation)


def _choose(candidates, total, most_test, most_validation):
    """(test, validation) rows: a tenth and a thirtieth of the text, but no more than asked, drawn with a fixed seed."""
    order = np.random.default_rng(HELD_OUT_SEED).permutation(len(candidates))
    test = min(most_test, total // 10, len(candidates) // 2)
    validation = min(most_validation, total // 30, len(candidates) // 4)
    picked = [candidates[i] for i in order[: test + validation]]
    return picked[:test], picked[test:]


def _halves(sentence):
    words = sentence.split()
    return " ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])


def _number(rows):
    """(distinct texts, int array (n, V) of their numbers)."""
    numbers = {}
    examples = [[numbers.setdefault(text, len(numbers)) for text in row] for row in rows]
    return list(numbers), np.array(examples, np.int64) if rows else np.empty((0, 1), np.int64)
