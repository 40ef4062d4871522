"""Pairs set aside for the examination, and a training set that has seen nothing of them.

A pair is worth holding out only if training met neither side of it. Documentation repeats itself, so it is
not enough to drop the pair: every training text in which a held-out sentence occurs, word for word, goes too.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nano_simcse.data.docstrings import Corpus, Entry
from nano_simcse.data.prose import same_text, sentences
from nano_simcse.errors import InputError


@dataclass(frozen=True)
class Split:
    """Training text and held-out entries that share no sentence."""

    train_sentences: list[str]
    train_entries: list[Entry]
    held_out_entries: list[Entry]

    @property
    def train_pairs(self) -> list[tuple[str, str]]:
        """(summary, description) of every training entry."""
        return [(entry.summary, entry.description) for entry in self.train_entries]

    @property
    def held_out_pairs(self) -> list[tuple[str, str]]:
        """(summary, description) of every held-out entry; no two share a summary or a description."""
        return [(entry.summary, entry.description) for entry in self.held_out_entries]


def hold_out(corpus: Corpus, count: int = 1000, seed: int = 0) -> Split:
    """Draw `count` pairs uniformly at random and leave out of the rest whatever contains a sentence of theirs.

    A pair whose summary or description was drawn before is passed over, since finding "the" description of
    a summary needs both to be unique. Texts are compared by their words: case, spaces and punctuation do not
    count. Raises InputError when `count` is below 1 or the corpus has too few distinct pairs.
    """
    if count < 1:
        raise InputError(f"cannot hold out {count} pairs; expected at least 1")
    pairs = corpus.pairs
    drawn, seen = [], set()
    for index in np.random.default_rng(seed).permutation(len(pairs)):
        sides = {("summary", same_text(pairs[index].summary)), ("description", same_text(pairs[index].description))}
        if seen.isdisjoint(sides):
            seen |= sides
            drawn.append(int(index))
        if len(drawn) == count:
            break
    else:
        raise InputError(f"cannot hold out {count} pairs; the corpus has {len(drawn)} with distinct texts")

    unseen = {same_text(s) for index in drawn for s in sentences_of(pairs[index])}
    kept_back = set(drawn)
    rest = [pair for index, pair in enumerate(pairs) if index not in kept_back]
    told = set(texts_with(unseen, corpus.sentences))
    told_by_entry = {at // 2 for at in texts_with(unseen, [side for pair in rest for side in pair[1:]])}
    return Split(
        train_sentences=[s for at, s in enumerate(corpus.sentences) if at not in told],
        train_entries=[pair for at, pair in enumerate(rest) if at not in told_by_entry],
        held_out_entries=[pairs[index] for index in drawn],
    )


def sentences_of(entry: Entry) -> list[str]:
    """Both sides of a pair and every sentence in them."""
    return [*entry[1:], *sentences(entry.summary), *sentences(entry.description)]


def texts_with(runs: Iterable[str], texts: Sequence[str]) -> Iterator[int]:
    """Indices of the texts in which one of `runs` (as `same_text` gives them) occurs as consecutive words."""
    # By their first words, so that each place in a text is compared with few candidates.
    starting = defaultdict(list)
    for run in runs:
        if words := run.split():
            starting[tuple(words[:2])].append(words)
    for at, text in enumerate(texts):
        words = same_text(text).split()
        if any(
            words[place : place + len(run)] == run
            for place in range(len(words))
            for run in starting.get(tuple(words[place : place + 2]), ())
        ):
            yield at
