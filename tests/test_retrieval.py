"""Lexical and dense search, their mixture, and the order of results: values by hand."""

import logging
import math

import numpy as np
import pytest

from nano_simcse.errors import InputError
from nano_simcse.inputs import unit_rows
from nano_simcse.retrieval import (
    DenseIndex,
    LexicalIndex,
    fuse,
    lexical_words,
    standardise,
    top_k,
)

# ---- words ----


@pytest.mark.parametrize("text, words", [
    ("numpy.linalg.svd", ["numpy", "linalg", "svd"]),
    ("Return the LinearOperator's norm", ["return", "linear", "operator", "linearoperator", "norm"]),
    ("load_txt and x86_64", ["load", "txt", "x86", "64"]),
    ("HTTPServer NumPy GPUs NaN", ["http", "server", "httpserver", "num", "py", "numpy", "gpus", "nan"]),
    ("A k-means of the n points", ["k", "means", "n", "points"]),
    ("It's x's default: don't use 't'", ["x", "default", "don", "use", "t"]),
    ("naïve Größe", ["naïve", "größe"]),
    ("-- ... !", []),
    ("", []),
])
def test_words(text, words):
    assert lexical_words(text) == words


# ---- BM25 ----

CORPUS = ["the cat sat; the cat slept", "a dog and a cat", "birds sing loudly in trees"]
WORDS = [["cat", "sat", "cat", "slept"], ["dog", "cat"], ["birds", "sing", "loudly", "trees"]]


def bm25(query, words, k1, b):
    """The formula term by term, in plain Python."""
    n, mean_length = len(words), sum(map(len, words)) / len(words)
    scores = []
    for entry in words:
        total = 0.0
        for word in query:
            containing = sum(word in other for other in words)
            idf = math.log(1 + (n - containing + 0.5) / (containing + 0.5))
            f = entry.count(word)
            total += idf * f / (f + k1 * (1 - b + b * len(entry) / mean_length))
        scores.append(total)
    return scores


@pytest.mark.parametrize("k1, b", [(1.5, 0.75), (0.9, 0.4), (2.0, 0.0), (0.7, 1.0)])
@pytest.mark.parametrize("query", ["cat", "dog cat", "cat cat bird", "loudly sing"])
def test_bm25_equals_the_formula(query, k1, b):
    index = LexicalIndex(CORPUS, k1=k1, b=b)
    scores = index.scores(query)
    assert scores.dtype == np.float32 and scores.shape == (3,)
    np.testing.assert_allclose(scores, bm25(query.split(), WORDS, k1, b), rtol=1e-6, atol=0)


def test_bm25_one_value_by_hand():
    # n = 3, "dog" in one entry of 2 words, mean length 10/3: ln(1 + 2.5/1.5) / (1 + 1.5 (0.25 + 0.75 * 0.6))
    expected = math.log(8 / 3) / (1 + 1.5 * 0.7)
    np.testing.assert_allclose(LexicalIndex(CORPUS).scores("dog"), [0, expected, 0], rtol=1e-6)


def test_an_identifier_is_found_by_its_parts_in_either_spelling():
    index = LexicalIndex(["Solve a linear system.", "See numpy.linalg.svd for details.", "A LinearOperator acts."])
    assert index.search("SVD", 1)[0].tolist() == [1]
    assert index.search("linearoperator", 1)[0].tolist() == [2]
    assert index.search("linear operator", 1)[0].tolist() == [2]


def test_score_matrix_stacks_the_queries():
    index = LexicalIndex(CORPUS)
    queries = ["cat", "unheard", "sing dog"]
    matrix = index.score_matrix(queries)
    assert matrix.dtype == np.float32 and matrix.shape == (3, 3)
    for row, query in zip(matrix, queries, strict=True):
        np.testing.assert_array_equal(row, index.scores(query))
    assert index.score_matrix([]).shape == (0, 3)


@pytest.mark.parametrize("query", ["quark", "", "the of", "?!"])
def test_a_query_without_known_words_still_gets_an_answer_in_corpus_order(query):
    best, scores = LexicalIndex(CORPUS).search(query, 5)
    assert best.tolist() == [0, 1, 2] and scores.tolist() == [0, 0, 0]


def test_a_single_text_and_texts_without_words():
    assert LexicalIndex(["one cat"]).search("cat")[0].tolist() == [0]
    assert LexicalIndex(["one cat"]).scores("cat")[0] == pytest.approx(math.log(4 / 3) / 2.5, rel=1e-6)
    assert LexicalIndex(["", "the"]).scores("cat").tolist() == [0, 0]
    index = LexicalIndex(["", "cat"])
    assert len(index) == 2 and index.scores("cat")[0] == 0 < index.scores("cat")[1]


def test_equal_texts_tie_and_keep_their_order():
    best, scores = LexicalIndex(["cat dog", "bird", "cat dog", "cat dog"]).search("dog cat", 4)
    assert best.tolist() == [0, 2, 3, 1] and scores[0] == scores[1] == scores[2] > scores[3]


def test_indexing_is_silent(capfd, caplog):
    with caplog.at_level(logging.DEBUG):
        LexicalIndex(CORPUS * 50).score_matrix(["cat"] * 50)
    captured = capfd.readouterr()
    assert captured.out == captured.err == "" and not caplog.records


@pytest.mark.parametrize("build, words", [
    (lambda: LexicalIndex([]), "corpus is empty"),
    (lambda: LexicalIndex("one text"), "got one string"),
    (lambda: LexicalIndex(["cat", None]), "NoneType"),
    (lambda: LexicalIndex(CORPUS, k1=-1), "k1 .* got -1"),
    (lambda: LexicalIndex(CORPUS, b=1.5), "b .* got 1.5"),
    (lambda: LexicalIndex(CORPUS).scores(3), "int"),
    (lambda: LexicalIndex(CORPUS).score_matrix("cat"), "got one string"),
    (lambda: LexicalIndex(CORPUS).search("cat", 0), "k must be"),
])
def test_bad_lexical_input_is_named(build, words):
    with pytest.raises(InputError, match=words):
        build()


# ---- dense ----

def test_cosines_by_hand():
    index = DenseIndex(np.array([[2.0, 0.0], [3.0, 4.0], [0.0, -1.0]]))
    np.testing.assert_allclose(index.scores(np.array([5.0, 0.0])), [1, 0.6, 0], atol=1e-15)
    np.testing.assert_allclose(index.score_matrix(np.array([[5.0, 0.0], [0.0, 2.0]])),
                               [[1, 0.6, 0], [0, 0.8, -1]], atol=1e-15)
    best, cosines = index.search(np.array([0.0, 1.0]), 2)
    assert best.tolist() == [1, 0] and cosines == pytest.approx([0.8, 0])


def test_float32_stays_float32_and_the_input_is_not_touched():
    x = np.array([[2, 0], [3, 4]], np.float32)
    before = x.copy()
    assert DenseIndex(x).scores(np.array([1, 1], np.float32)).dtype == np.float32
    np.testing.assert_array_equal(x, before)


def test_equal_rows_tie_exactly_and_keep_their_order():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(203, 37)).astype(np.float32)
    copies = np.array([3, 50, 51, 120, 199, 202])
    x[copies] = x[3]
    index = DenseIndex(x)
    assert len(index) == 203
    for query in rng.normal(size=(20, 37)).astype(np.float32):
        scores = index.scores(query)
        assert len(set(scores[copies].tolist())) == 1
    assert index.search(x[3], 6)[0].tolist() == copies.tolist()


def test_zeros_of_either_sign_make_equal_rows():
    x = np.random.default_rng(0).normal(size=(64, 33)).astype(np.float32)
    x[:, ::3] = 0
    signed = np.where(x == 0, np.float32(-0.0), x)
    index = DenseIndex(np.concatenate([x, signed]))
    for query in np.random.default_rng(1).normal(size=(20, 33)).astype(np.float32):
        scores = index.scores(query)
        assert scores[:64].tolist() == scores[64:].tolist()
    assert len(index._distinct) == 64


def test_very_large_and_very_small_rows_keep_their_direction():
    x = np.array([[3e30, 4e30], [3e-30, 4e-30]], np.float32)
    np.testing.assert_allclose(unit_rows(x), [[0.6, 0.8]] * 2, rtol=1e-6)


@pytest.mark.parametrize("build, words", [
    (lambda: DenseIndex(np.zeros((0, 4))), "corpus is empty"),
    (lambda: DenseIndex(np.ones(4)), r"shape \(n, D\)"),
    (lambda: DenseIndex(np.array([[1.0, 1.0], [0.0, 0.0]])), "row 1 is the zero vector"),
    (lambda: DenseIndex(np.array([[1.0, 1.0], [1.0, np.nan]])), "row 1 holds a NaN"),
    (lambda: DenseIndex(np.array([["a", "b"]])), "real numbers"),
    (lambda: DenseIndex(np.eye(3)).scores(np.ones(2)), "2 wide"),
    (lambda: DenseIndex(np.eye(3)).scores(np.ones((1, 3))), r"shape \(D,\)"),
    (lambda: DenseIndex(np.eye(3)).scores(np.zeros(3)), "queries row 0 is the zero vector"),
])
def test_bad_dense_input_is_named(build, words):
    with pytest.raises(InputError, match=words):
        build()


# ---- mixing ----

def test_standardise_by_hand():
    # mean 3, population variance 8/3
    expected = np.array([-1, 0, 1]) * 2 / math.sqrt(8 / 3)
    np.testing.assert_allclose(standardise(np.array([1.0, 3.0, 5.0])), expected, atol=1e-15)
    two = standardise(np.array([[1.0, 3.0, 5.0], [10.0, 30.0, 50.0]]))
    np.testing.assert_allclose(two, [expected, expected], atol=1e-14)


@pytest.mark.filterwarnings("error")
def test_a_row_without_preference_becomes_zeros():
    assert standardise(np.full(7, 0.1)).tolist() == [0] * 7
    assert standardise(np.zeros(3, np.float32)).tolist() == [0] * 3
    noise = np.float32(1) + np.float32(1e-7) * np.arange(5, dtype=np.float32)
    assert np.ptp(noise) > 0 and standardise(noise).tolist() == [0] * 5
    mixed = standardise(np.array([[1.0, 1.0], [0.0, 2.0]]))
    assert mixed.tolist() == [[0, 0], [-1, 1]]


def test_standardise_keeps_the_dtype_and_takes_integers():
    assert standardise(np.array([1, 2], np.float32)).dtype == np.float32
    assert standardise(np.array([1, 3])).tolist() == [-1, 1]


def test_fuse_by_hand():
    dense, lexical = np.array([0.90, 0.91, 0.92]), np.array([7.0, 7.0, 1.0])
    z_dense = np.array([-1, 0, 1]) * math.sqrt(1.5)
    z_lexical = np.array([1, 1, -2]) / math.sqrt(2)
    np.testing.assert_allclose(fuse(dense, lexical), (z_dense + z_lexical) / 2, atol=1e-12)
    np.testing.assert_allclose(fuse(dense, lexical, 0.8), 0.8 * z_dense + 0.2 * z_lexical, atol=1e-12)
    assert top_k(fuse(dense, lexical), 3).tolist() == [1, 2, 0]


def test_a_side_without_preference_leaves_the_choice_to_the_other():
    dense = np.array([0.2, 0.9, 0.5])
    assert top_k(fuse(dense, np.zeros(3)), 3).tolist() == [1, 2, 0]
    assert top_k(fuse(np.full(3, 0.7), np.array([1.0, 0.0, 4.0])), 3).tolist() == [2, 0, 1]


@pytest.mark.parametrize("call, words", [
    (lambda: fuse(np.zeros(3), np.zeros(4)), "differ in shape"),
    (lambda: fuse(np.zeros(3), np.zeros(3), 1.2), r"\[0, 1\], got 1.2"),
    (lambda: standardise(np.array([1.0, np.inf])), "finite"),
    (lambda: standardise(np.zeros((2, 0))), "corpus is empty"),
    (lambda: standardise(np.zeros((2, 2, 2))), "shape"),
])
def test_bad_mixing_input_is_named(call, words):
    with pytest.raises(InputError, match=words):
        call()


# ---- order ----

def test_top_k_keeps_equal_scores_in_index_order():
    scores = np.array([0.5, 0.9, 0.5, 0.9, 0.1, 0.5])
    assert top_k(scores, 4).tolist() == [1, 3, 0, 2]
    assert top_k(np.array([0, 255, 3], np.uint8), 3).tolist() == [1, 2, 0]
    assert top_k(np.array([True, False, True]), 2).tolist() == [0, 2]
    assert top_k(np.array([-0.0, 0.0]), 2).tolist() == [0, 1]
    many = np.random.default_rng(0).integers(0, 5, 2000)
    assert top_k(many, 700).tolist() == sorted(range(2000), key=lambda i: (-many[i], i))[:700]


def test_top_k_for_several_queries_and_more_than_there_is():
    scores = np.array([[1.0, 3.0, 2.0], [2.0, 2.0, -np.inf]])
    assert top_k(scores, 2).tolist() == [[1, 2], [0, 1]]
    assert top_k(scores, 99).tolist() == [[1, 2, 0], [0, 1, 2]]
    assert top_k(scores[0], 99).shape == (3,)


@pytest.mark.parametrize("scores, k, words", [
    (np.ones(3), 0, "got 0"), (np.ones(3), -2, "got -2"), (np.ones(3), 2.0, "got 2.0"), (np.ones(3), True, "True"),
    (np.ones(0), 1, "corpus is empty"), (np.array([1.0, np.nan]), 1, "NaN"), (np.float64(1), 1, "shape"),
])
def test_bad_top_k_input_is_named(scores, k, words):
    with pytest.raises(InputError, match=words):
        top_k(scores, k)
