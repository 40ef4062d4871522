"""The report of a run: the weight that search gives the embeddings, chosen on pairs whose answer is known by hand."""

import numpy as np
import pytest

from nano_simcse.evaluation import Embedded
from nano_simcse.training.report import Judge, search_report

WORDS = ["apple", "bridge", "candle", "dragon", "engine"]
SHIFTED = [*WORDS[1:], WORDS[0]]


class Coordinates(Embedded):
    """Each text has a number, and its embedding is that coordinate."""

    device = "cpu"

    def __init__(self, number_of):
        super().__init__(number_of, np.eye(len(WORDS))[list(number_of.values())])
        self.number_of = number_of

    def fingerprint(self):
        return str(self.number_of)

    def similarity(self, a, b):
        return a @ b.T


def judge(query_words):
    """Five pairs; BM25 sees the query's word in the target that has it."""
    return Judge([(f"find {word}", f"the {target} here") for word, target in zip(query_words, WORDS, strict=True)])


def encoder(pairs, right):
    """Embeddings that find every target, or the one after it."""
    shift = 0 if right else 1
    numbers = {query: (i + shift) % len(pairs) for i, (query, _) in enumerate(pairs)}
    return Coordinates(numbers | {target: i for i, (_, target) in enumerate(pairs)})


@pytest.mark.parametrize(
    ("words_right", "dense_right", "weight", "bm25", "fused"),
    [
        (True, True, 0.5, 100.0, 100.0),  # all weights find all: equal ones win the tie
        (True, False, 0.4, 100.0, 100.0),  # the nearest to equal at which the words outvote the embeddings
        (False, True, 0.6, 0.0, 100.0),
    ],
)
def test_weight_of_the_embeddings_is_chosen_by_who_finds_the_target(words_right, dense_right, weight, bm25, fused):
    validation = judge(WORDS if words_right else SHIFTED)
    found = search_report(encoder(validation.pairs, dense_right), validation, validation)
    assert found == {"bm25": bm25, "fused": fused, "dense_weight": weight}


def test_without_validation_pairs_both_sides_weigh_the_same():
    test = judge(WORDS)
    assert search_report(encoder(test.pairs, True), test, Judge([]))["dense_weight"] == 0.5
    assert search_report(encoder(test.pairs, True), Judge([]), test) == {}
