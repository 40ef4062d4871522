"""Sections of the embedded corpus, held-out ones apart, and word vectors that have never seen those.

A section is a description of at least three views; two of its views therefore never overlap when one is its start and
the other its end. Documentation repeats itself, so two rules keep the split clean: a section that shares a sentence
with an earlier one is left out, and so is any training text that holds a sentence of a held-out section.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from nano_simcse.data.docstrings import load_corpus
from nano_simcse.data.held_out import sentences_of, texts_with
from nano_simcse.data.prose import same_text
from nano_simcse.data.prose import sentences as split_sentences
from nano_simcse.word2vec import split_words, train_word2vec

VIEW = 40  # words of a view
SHARE = 0.3  # of the sections is held out
SETTINGS = {"width": 32, "window": 4, "negatives": 5, "steps": 900, "lr": 0.03, "min_count": 5, "threshold": 1e-3}


@dataclass(frozen=True)
class SectionSplit:
    """Texts as lists of words; documents: what word vectors may read, the training sections among it.

    leaks: how many documents hold a whole sentence of a held-out section.
    """

    train: list[list[str]]
    held_out: list[list[str]]
    documents: list[list[str]]
    leaks: int


@cache
def split_sections(seed=0, view=VIEW, share=SHARE, careful=True):
    """The embedded corpus as a SectionSplit; the split is drawn by `seed`. careful=False drops both rules above."""
    entries = [entry for entry in load_corpus(progress=False).entries if len(split_words(entry.description)) >= view]
    seen, sections = set(), []
    for at, entry in enumerate(entries):
        own = {same_text(s) for s in split_sentences(entry.description)}
        if len(split_words(entry.description)) >= 3 * view and (seen.isdisjoint(own) or not careful):
            seen |= own
            sections.append(at)
    order = np.random.default_rng(seed).permutation(len(sections))
    held_out = {sections[i] for i in order[: int(len(sections) * share)]}
    rest = [at for at in range(len(entries)) if at not in held_out]
    unseen = {same_text(s) for at in held_out for s in sentences_of(entries[at])}
    texts = [f"{entries[at].summary} {entries[at].description}" for at in rest]
    told = set(texts_with(unseen, texts))
    kept = [text for i, text in enumerate(texts) if not (careful and i in told)]
    return SectionSplit(
        train=[split_words(entries[at].description) for at in sections if at not in held_out],
        held_out=[split_words(entries[at].description) for at in sorted(held_out)],
        documents=[split_words(text) for text in kept],
        leaks=len(list(texts_with(unseen, kept))),
    )


@cache
def word_vectors(seed=0, steps=SETTINGS["steps"], split=0):
    """Skip-gram vectors of the training documents of a split, in float32."""
    return train_word2vec(split_sections(split).documents, **{**SETTINGS, "steps": steps}, seed=seed, progress=False)
