"""The report of a run: the weight that search gives the embeddings, chosen on pairs whose answer is known by hand."""

import numpy as np
import pytest

from nano_simcse.evaluation import Embedded
from nano_simcse.protocol import evaluate_pairs
from nano_simcse.training.report import Judge, dense_weight, search_report

WORDS = [f"word{i}" for i in range(40)]


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


def judge(count, right=True):
    """`count` pairs; BM25 sees the query's word in its own target, or in the one after it."""
    words = WORDS[:count]
    asked = words if right else [*words[1:], words[0]]
    return Judge([(f"find {word}", f"the {target} here") for word, target in zip(asked, words, strict=True)])


def encoder(pairs, right):
    """Embeddings that find every target, or the one after it."""
    shift = 0 if right else 1
    numbers = {query: (i + shift) % len(pairs) for i, (query, _) in enumerate(pairs)}
    return Coordinates(numbers | {target: i for i, (_, target) in enumerate(pairs)})


@pytest.mark.parametrize(
    ("count", "words_right", "dense_right", "weight", "bm25", "fused"),
    [
        (40, True, True, 0.5, 100.0, 100.0),  # all weights find all: equal ones win the tie
        (40, True, False, 0.4, 100.0, 100.0),  # the nearest to equal at which the words outvote the embeddings
        (40, False, True, 0.5, 0.0, 100.0),  # equal weights already let the embeddings win
        (5, True, False, 0.5, 100.0, 60.0),  # the same on five pairs may be chance
    ],
)
def test_weights_are_equal_unless_others_clearly_find_more(count, words_right, dense_right, weight, bm25, fused):
    validation = judge(count, words_right)
    found = search_report(encoder(validation.pairs, dense_right), validation, validation)
    assert found == {"bm25": bm25, "fused": fused, "dense_weight": weight}


def test_the_side_that_finds_the_target_gets_just_the_weight_it_needs():
    # its second choice makes the good side less sure than the bad one: 4.60 deviations above its mean against 6.24
    good = np.eye(40) + 0.9 * np.roll(np.eye(40), 7, axis=1)
    bad = np.roll(np.eye(40), 1, axis=1)
    forty = judge(40).partners
    assert dense_weight(good, bad, forty) == 0.6  # 0.6 * 4.60 > 0.4 * 6.24, but 0.5 * 4.60 < 0.5 * 6.24
    assert dense_weight(bad, good, forty) == 0.4
    # one query of forty in which only the dense side is right is no reason
    words, both = np.eye(40), np.eye(40)
    words[0] = bad[0]
    both[0] = good[0]
    assert dense_weight(both, words, forty) == 0.5
    # as clear as can be, but on too few to say so
    assert dense_weight(good[:29, :29], bad[:29, :29], judge(29).partners) == 0.5
    assert dense_weight(good[:30, :30], bad[:30, :30], judge(30).partners) == 0.6


def test_the_report_of_a_run_counts_as_evaluate_does():
    """Ten queries share two targets and find them, although one of them has a second target; of this, and of a target
    that is a query too, the encoder knows nothing."""
    numbers = {f"query {i}": i % 2 for i in range(10)} | {word: i for i, word in enumerate(WORDS[:3])}
    pairs = [(f"query {i}", WORDS[i % 2]) for i in range(10)] + [("query 0", WORDS[2]), (WORDS[0], WORDS[2])]
    encoder, held = Coordinates(numbers), Judge(pairs)
    percent = evaluate_pairs(encoder, pairs)["recall_at_1"]
    assert percent == held.score(encoder) == pytest.approx(1000 / 12)
    assert held.measure(encoder)["recall_at_1"] == round(percent, 4)
    dense, lexical = held.search_scores(encoder)
    assert dense.shape == lexical.shape == (12, 3)
    fused = search_report(encoder, held, Judge([]))
    assert fused["bm25"] == 0.0 and fused["fused"] == round(percent, 4)


def test_without_validation_pairs_both_sides_weigh_the_same():
    test = judge(5)
    assert search_report(encoder(test.pairs, True), test, Judge([]))["dense_weight"] == 0.5
    assert search_report(encoder(test.pairs, True), Judge([]), test) == {}
