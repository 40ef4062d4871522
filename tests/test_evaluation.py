"""Correlations, STS protocols and recall: values by hand, scipy as a second opinion, ties and collapse."""

import csv
import itertools
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from nano_simcse import evaluation
from nano_simcse.errors import InputError
from nano_simcse.evaluation import (
    binomial_error,
    evaluate_sts,
    gold_ranks,
    paired_recall,
    pearson,
    rank_report,
    recall_at_k,
    spearman,
    sts_scores,
)

STS = Path(__file__).resolve().parents[2] / "shared" / "data" / "sts"


def pair(sentence1, sentence2, score, subset=None):
    return SimpleNamespace(subset=subset, sentence1=sentence1, sentence2=sentence2, score=score)


class Lookup:
    """An encoder that looks its vectors up and remembers what it was asked."""

    def __init__(self, table):
        self.table, self.calls = table, []

    def encode(self, sentences, batch_size, show_progress_bar):
        self.calls.append((list(sentences), batch_size, show_progress_bar))
        return np.array([self.table[s] for s in sentences], np.float32)


# ---- correlations ----

def test_spearman_by_hand():
    # ranks (1, 2, 3, 4) and (2, 1, 4, 3): 1 - 6 * 4 / (4 * 15) = 0.6
    assert spearman([10, 20, 30, 40], [0.2, 0.1, 0.9, 0.5]) == pytest.approx(0.6, abs=1e-15)


def test_spearman_gives_ties_their_average_rank():
    # ranks (1, 2.5, 2.5, 4) and (1, 2, 3, 4): covariance 4.5, variances 4.5 and 5 -> sqrt(0.9)
    assert spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(np.sqrt(0.9), abs=1e-15)


def test_pearson_by_hand():
    # centred (-1, 0, 1) and (-4/3, -1/3, 5/3): 3 / sqrt(2 * 42 / 9)
    assert pearson([1, 2, 3], [0, 1, 3]) == pytest.approx(3 / np.sqrt(2 * 42 / 9), abs=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_correlations_equal_scipy_with_many_ties(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 6, 200), rng.integers(0, 4, 200) + 0.5 * rng.integers(0, 3, 200)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-13)
    assert pearson(a, b) == pytest.approx(stats.pearsonr(a, b).statistic, abs=1e-13)


def test_spearman_sees_order_only_and_pearson_sees_spacing():
    a = np.array([0.1, 0.2, 0.7, 0.9])
    assert spearman(a, np.exp(9 * a)) == pytest.approx(1, abs=1e-15)
    assert spearman(a, -a) == pytest.approx(-1, abs=1e-15)
    assert 0.8 < pearson(a, np.exp(9 * a)) < 0.99


def test_pearson_survives_very_large_and_very_small_numbers():
    a, b = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 2.0])
    assert pearson(a * 1e200, b * 1e-200) == pytest.approx(pearson(a, b), abs=1e-14)
    with np.errstate(all="raise"):
        assert pearson(a / 4 * 1.5e308, b / 3 * -1.5e308) == pytest.approx(-pearson(a, b), abs=1e-14)
        assert pearson([1.5e308, -1.5e308, 1.5e308], [2.0, 1.0, 2.0]) == pytest.approx(1, abs=1e-14)


def test_pearson_keeps_its_digits_far_from_zero():
    a, b = np.array([0.0, 1, 2, 4, 4]), np.arange(5.0)
    assert pearson(7e14 + a, b) == pytest.approx(pearson(a, b), abs=1e-15)
    last = np.arange(10000) == 9999
    assert pearson(1 + last * 2.0**-52, np.arange(10000)) == pytest.approx(pearson(last, np.arange(10000)), abs=1e-15)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("constant", [[0.1] * 10, [3] * 10, [0.7] * 1])
def test_a_constant_side_has_no_correlation(constant):
    other = np.arange(len(constant)) + 1.0
    for correlation in (pearson, spearman):
        assert np.isnan(correlation(constant, other))
        assert np.isnan(correlation(other, constant))


@pytest.mark.parametrize("a, b, words", [
    ([1, 2], [1, 2, 3], "2 and 3"),
    ([], [], "at least one"),
    ([1, np.nan], [1, 2], "a must be finite, got nan at position 1"),
    ([1, 2], [1, np.inf], "b must be finite, got inf at position 1"),
    ([[1, 2]], [1, 2], "shape"),
    (["x", "y"], [1, 2], "list of numbers"),
])
def test_bad_numbers_are_named(a, b, words):
    for correlation in (pearson, spearman):
        with pytest.raises(InputError, match=words):
            correlation(a, b)


# ---- STS protocols ----

def test_the_means_can_be_lower_than_all():
    # Inside each subset the ranks are (3, 1, 2) for gold (1, 2, 3), but the level of the subsets is right.
    report = sts_scores([0.12, 0.10, 0.11, 0.82, 0.80, 0.81], [0, 0.5, 1, 4, 4.5, 5], list("aaabbb"))
    assert report["mean"]["spearman"] == pytest.approx(-50, abs=1e-12)
    assert report["wmean"]["spearman"] == pytest.approx(-50, abs=1e-12)
    assert report["all"]["spearman"] == pytest.approx(100 * 23 / 35, abs=1e-12)  # 0.657
    assert report["subsets"]["a"]["spearman"] == pytest.approx(-50, abs=1e-12)


def test_the_means_can_be_higher_than_all():
    # Perfect order inside both subsets, and the scores of the second lie .55 too high.
    gold = np.arange(6.0)
    report = sts_scores(np.r_[gold / 10, gold / 10 + 0.55], np.r_[gold, gold], ["a"] * 6 + ["b"] * 6)
    assert report["mean"]["spearman"] == pytest.approx(100, abs=1e-12)
    # centred ranks: gold (-5, -3, -1, 1, 3, 5) twice, scores -5.5 ... 5.5; products sum to 70, squares to 140, 143
    assert report["all"]["spearman"] == pytest.approx(100 * 70 / np.sqrt(140 * 143), abs=1e-11)  # 49.47
    assert report["spearman"] == report["all"]["spearman"]


def test_wmean_weighs_by_rows_and_mean_does_not():
    # Subset a: 2 rows in perfect order; subset b: 4 rows with Spearman 0.6.
    report = sts_scores([1, 2, 2, 1, 4, 3], [0, 5, 1, 2, 3, 4], ["a", "a", "b", "b", "b", "b"])
    assert report["mean"]["spearman"] == pytest.approx((100 + 60) / 2, abs=1e-12)
    assert report["wmean"]["spearman"] == pytest.approx((2 * 100 + 4 * 60) / 6, abs=1e-12)
    assert report["mean"]["pearson"] == pytest.approx((100 + 60) / 2, abs=1e-12)
    assert [part["count"] for part in report["subsets"].values()] == [2, 4]


def test_subset_rows_need_not_be_neighbours():
    scores, gold = np.array([1, 2, 2, 1, 4, 3.0]), np.array([0, 5, 1, 2, 3, 4.0])
    order, labels = [3, 0, 5, 1, 2, 4], np.array(["a", "a", "b", "b", "b", "b"])
    report = sts_scores(scores[order], gold[order], labels[order])
    assert report["wmean"]["spearman"] == pytest.approx((2 * 100 + 4 * 60) / 6, abs=1e-12)
    assert list(report["subsets"]) == ["b", "a"]


def test_without_subsets_only_all_is_reported():
    report = sts_scores([1, 2, 3], [1, 3, 2])
    assert set(report) == {"count", "spearman", "pearson", "all"}
    assert report["spearman"] == pytest.approx(50, abs=1e-12)


def test_an_undefined_subset_makes_the_means_undefined_but_not_all():
    report = sts_scores([1, 2, 3], [1, 2, 3], ["a", "a", "b"])
    assert report["all"]["spearman"] == pytest.approx(100, abs=1e-12)
    assert np.isnan(report["mean"]["spearman"]) and np.isnan(report["wmean"]["pearson"])


@pytest.mark.parametrize("arguments, words", [
    (([1, 2], [3, 3]), "all 2 gold scores are 3"),
    (([1, 2, 3], [1, 2]), "3 scores but 2 gold"),
    (([1, 2], [1, 2], ["a"]), "1 subset labels for 2 rows"),
])
def test_bad_sts_input_is_named(arguments, words):
    with pytest.raises(InputError, match=words):
        sts_scores(*arguments)


def test_evaluate_sts_by_hand_and_encodes_each_sentence_once():
    encoder = Lookup({"a": [1, 0], "b": [3, 4], "c": [0, 2], "d": [-5, 0]})
    # cosines .6, 0, 1, -1; gold 3, 1, 5, 0 in the same order
    pairs = [pair("a", "b", 3), pair("a", "c", 1), pair("c", "c", 5), pair("d", "a", 0)]
    report = evaluate_sts(encoder, pairs, batch_size=7, show_progress_bar=False)
    assert encoder.calls == [(["a", "c", "d", "b"], 7, False)]  # first sentences, then the new second ones
    assert report["spearman"] == pytest.approx(100, abs=1e-12)
    # centred: cosines (.45, -.15, .85, -1.15), gold (.75, -1.25, 2.75, -2.25)
    assert report["pearson"] == pytest.approx(100 * 5.45 / np.sqrt(2.27 * 14.75), abs=1e-10)
    assert (report["count"], report["sentences"]) == (4, 4)
    assert "mean" not in report


def test_evaluate_sts_reports_subsets_when_pairs_carry_them():
    encoder = Lookup({"a": [1, 0], "b": [3, 4], "c": [0, 2], "d": [-5, 0]})
    pairs = [pair("a", "b", 3, "x"), pair("a", "c", 1, "x"), pair("c", "c", 0, "y"), pair("d", "a", 5, "y")]
    report = evaluate_sts(encoder, pairs)
    assert report["mean"]["spearman"] == pytest.approx(0, abs=1e-12)
    assert report["subsets"]["y"]["spearman"] == pytest.approx(-100, abs=1e-12)


def test_evaluate_sts_in_blocks_equals_one_block(monkeypatch):
    rng = np.random.default_rng(3)
    encoder = Lookup({str(i): rng.normal(size=5) for i in range(30)})
    pairs = [pair(str(i), str(j), (i * j) % 6) for i, j in itertools.combinations(range(30), 2)]
    whole = evaluate_sts(encoder, pairs)
    monkeypatch.setattr(evaluation, "_BLOCK_ROWS", 7)
    assert evaluate_sts(encoder, pairs) == whole


def test_a_collapsed_encoder_has_no_correlation():
    # Rows that differ in length only have cosine 1 up to rounding; the rounding must not be ranked.
    rng = np.random.default_rng(0)
    direction = rng.normal(size=64)
    encoder = Lookup({str(i): direction * (1 + i / 7) for i in range(40)})
    pairs = [pair(str(i), str((i * 7 + 1) % 40), i % 6) for i in range(40)]
    assert np.isnan(evaluate_sts(encoder, pairs)["spearman"])


def test_evaluate_sts_names_what_is_wrong():
    encoder = Lookup({"a": [1, 0], "b": [0, 0], "n": [np.nan, 0]})
    with pytest.raises(InputError, match="no sentence pair"):
        evaluate_sts(encoder, [])
    with pytest.raises(InputError, match="1 of 2 pairs have no subset"):
        evaluate_sts(encoder, [pair("a", "a", 1, "x"), pair("a", "a", 2)])
    with pytest.raises(InputError, match="zero vector"):
        evaluate_sts(encoder, [pair("a", "b", 1), pair("a", "a", 2)])
    with pytest.raises(InputError, match="NaN or infinity"):
        evaluate_sts(encoder, [pair("a", "n", 1), pair("a", "a", 2)])
    encoder.encode = lambda sentences, **_: np.ones((len(sentences) + 1, 2))
    with pytest.raises(InputError, match=r"\(2, 2\) for 1 sentences"):
        evaluate_sts(encoder, [pair("a", "a", 1), pair("a", "a", 2)])


def test_scores_that_cannot_be_correlated_are_refused_before_anything_is_encoded():
    encoder = Lookup({"a": [1, 0]})
    for pairs, words in (
        ([pair("a", "a", 3), pair("a", "a", 3)], "all 2 gold scores are 3"),
        ([pair("a", "a", 3, "x"), pair("a", "a", 2)], "1 of 2 pairs have no subset"),
        ([pair("a", "a", 3), pair("a", "a", np.nan)], "scores must be finite"),
    ):
        with pytest.raises(InputError, match=words):
            evaluate_sts(encoder, pairs)
    assert encoder.calls == []


@pytest.mark.skipif(not STS.is_dir(), reason="the STS files (../shared/data/sts) are not here")
@pytest.mark.parametrize("name, labelled", [("stsb-dev", False), ("sts12-test", True), ("sts14-test", True)])
def test_real_scores_with_ties_agree_with_scipy(name, labelled):
    with open(STS / f"{name}.tsv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    gold = np.array([float(row["score"]) for row in rows])
    overlap = np.array([_word_overlap(row["sentence1"], row["sentence2"]) for row in rows])
    subsets = np.array([row["subset"] for row in rows]) if labelled else None
    assert len(set(gold)) < len(gold) / 10 and len(set(overlap)) < len(overlap) / 5  # ties on both sides
    report = sts_scores(overlap, gold, subsets)
    assert report["spearman"] == pytest.approx(100 * stats.spearmanr(overlap, gold).statistic, abs=1e-10)
    assert report["pearson"] == pytest.approx(100 * stats.pearsonr(overlap, gold).statistic, abs=1e-10)
    if labelled:
        names, counts = np.unique(subsets, return_counts=True)
        each = [100 * stats.spearmanr(overlap[subsets == s], gold[subsets == s]).statistic for s in names]
        assert report["mean"]["spearman"] == pytest.approx(np.mean(each), abs=1e-10)
        assert report["wmean"]["spearman"] == pytest.approx(np.dot(each, counts) / counts.sum(), abs=1e-10)


def _word_overlap(a, b):
    a, b = set(a.lower().split()), set(b.lower().split())
    return len(a & b) / len(a | b)


# ---- recall ----

SCORES = np.array([[0.9, 0.1, 0.5],   # gold 0: rank 1
                   [0.8, 0.7, 0.6],   # gold 2: rank 3
                   [0.1, 0.3, 0.2],   # gold 2: rank 2
                   [0.4, 0.4, 0.1]])  # gold 1: tied for the first place, counted as rank 2
GOLD = np.array([0, 2, 2, 1])


def test_ranks_and_recall_by_hand():
    assert gold_ranks(SCORES, GOLD).tolist() == [1, 3, 2, 2]
    assert [recall_at_k(SCORES, GOLD, k) for k in (1, 2, 3, 9)] == [25.0, 75.0, 100.0, 100.0]
    assert recall_at_k(SCORES, GOLD) == 25.0


def test_ties_count_against_the_right_candidate_wherever_it_stands():
    for gold in range(4):
        assert gold_ranks(np.ones((1, 4)), [gold]).tolist() == [4]
    assert recall_at_k(np.zeros((50, 50)), np.arange(50), k=49) == 0.0


def test_tolerance_turns_near_ties_into_ties():
    scores = np.array([[0.5, 0.5 - 1e-7, 0.2]])
    assert gold_ranks(scores, [0]).tolist() == [1]
    assert gold_ranks(scores, [0], tolerance=1e-6).tolist() == [2]


def test_minus_infinity_excludes_a_candidate_and_integers_are_scores():
    assert gold_ranks(np.array([[-np.inf, 1.0, 0.5]]), [2]).tolist() == [2]
    assert gold_ranks(np.array([[0, 1, 2]], np.uint8), [1]).tolist() == [2]


@pytest.mark.parametrize("scores, gold, k, words", [
    (SCORES, GOLD, 0, "k must be an integer >= 1, got 0"),
    (SCORES, GOLD, 1.5, "got 1.5"),
    (SCORES, [0, 1, 2, 3], 1, "gold must lie in"),
    (SCORES, [0, 1, 2, -1], 1, "gold must lie in"),
    (SCORES, [0, 1], 1, "gold must be 4 integers"),
    (SCORES, [0.0, 1.0, 2.0, 1.0], 1, "gold must be 4 integers"),
    (np.zeros((0, 3)), np.zeros(0, int), 1, r"shape \(n, m\)"),
    (np.full((4, 3), np.nan), GOLD, 1, "NaN"),
    (SCORES[0], GOLD, 1, r"shape \(n, m\)"),
])
def test_bad_recall_input_is_named(scores, gold, k, words):
    with pytest.raises(InputError, match=words):
        recall_at_k(scores, gold, k)


def test_rank_report_by_hand():
    report = rank_report([1, 2, 5, 20])
    assert report == {"count": 4, "recall_at_1": 25.0, "recall_at_5": 75.0, "recall_at_10": 75.0,
                      "mean_reciprocal_rank": pytest.approx((1 + 1 / 2 + 1 / 5 + 1 / 20) / 4, abs=1e-15)}
    with pytest.raises(InputError, match="start at 1"):
        rank_report([0, 1])


def test_paired_recall_by_hand():
    queries = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    targets = np.array([[5.0, 0.1], [1.0, 1.0], [0.0, 3.0]])
    # query 0 finds target 0; query 1 finds target 2 first, then 1; query 2 finds 1, then 0, then 2
    report = paired_recall(queries, targets)
    assert report["recall_at_1"] == pytest.approx(100 / 3)
    assert report["mean_reciprocal_rank"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_paired_recall_in_blocks_equals_the_whole_matrix(monkeypatch, dtype):
    rng = np.random.default_rng(1)
    targets = rng.normal(size=(40, 8)).astype(dtype)
    queries = (targets[:30] + rng.normal(size=(30, 8))).astype(dtype)
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, targets)]
    expected = recall_at_k(unit[0] @ unit[1].T, np.arange(30), 5)
    whole = paired_recall(queries, targets)
    monkeypatch.setattr(evaluation, "_BLOCK_ROWS", 7)
    assert paired_recall(queries, targets) == whole
    assert whole["recall_at_5"] == expected and 10 < whole["recall_at_1"] < 100


@pytest.mark.parametrize("dtype, noise", [(np.float32, 1e-4), (np.float64, 1e-8)])
def test_a_collapsed_encoder_finds_nothing(dtype, noise):
    # All rows alike up to noise whose effect on the cosine (its square) is below rounding.
    rng = np.random.default_rng(2)
    row = rng.normal(size=16)
    x, y = (row + noise * rng.normal(size=(101, 16)) * 1e-1 for _ in range(2))
    report = paired_recall(x.astype(dtype), y.astype(dtype))
    assert report["recall_at_10"] == 0.0 and report["mean_reciprocal_rank"] == pytest.approx(1 / 101)


@pytest.mark.parametrize("queries, targets", [
    (np.ones((3, 2)), np.ones((2, 2))), (np.ones((2, 2)), np.ones((2, 3))), (np.ones((0, 2)), np.ones((2, 2))),
])
def test_paired_recall_refuses_shapes_without_pairs(queries, targets):
    with pytest.raises(InputError, match="m >= n >= 1"):
        paired_recall(queries, targets)


def test_binomial_error_by_hand():
    assert binomial_error(50, 100) == 5.0
    assert binomial_error(37.0, 1000) == pytest.approx(100 * np.sqrt(0.37 * 0.63 / 1000), abs=1e-12)  # 1.53
    assert binomial_error(0, 10) == binomial_error(100, 10) == 0.0
    for percent, n in ((101, 10), (-1, 10), (np.nan, 10), (50, 0), (50, 2.5)):
        with pytest.raises(InputError):
            binomial_error(percent, n)
