"""Counted word vectors: counts, association and decomposition of texts small enough to work out by hand."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from nano_simcse import ppmi as module
from nano_simcse.architecture import INITIAL_STD
from nano_simcse.ppmi import SPARE, cooccurrences, largest_singular, ppmi, ppmi_vectors
from nano_simcse.training import TrainingConfig
from nano_simcse.training.initial import WORD_STD, initial_encoder

LN2 = np.log(2)
ROWS = [np.array([0, 1, 2]), np.array([0, 1])]


def test_pairs_are_counted_within_the_window_and_within_a_text():
    near = cooccurrences(ROWS, 4, window=1).toarray()
    np.testing.assert_array_equal(near, [[0, 2, 0, 0], [2, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    far = cooccurrences(ROWS, 3, window=9).toarray()
    np.testing.assert_array_equal(far, [[0, 2, 1], [2, 0, 1], [1, 1, 0]])
    # a word beside itself is a pair from either end
    np.testing.assert_array_equal(cooccurrences([np.array([1, 1])], 2).toarray(), [[0, 0], [0, 2]])


@pytest.mark.parametrize(("progress", "shown"), [(True, True), (False, False), (None, False)])
def test_a_bar_shows_where_it_is_asked_for_and_otherwise_on_a_terminal(progress, shown, capsys):
    cooccurrences(ROWS, 3, progress=progress)
    assert ("count words" in capsys.readouterr().err) == shown


def test_texts_counted_in_portions_give_the_same_counts(monkeypatch):
    generator = np.random.default_rng(0)
    rows = [generator.integers(0, 30, n) for n in generator.integers(0, 12, 50)]
    whole = cooccurrences(rows, 30, window=3).toarray()
    monkeypatch.setattr(module, "TOGETHER", 20)
    assert len(module._portions(rows)) > 5
    np.testing.assert_array_equal(cooccurrences(rows, 30, window=3).toarray(), whole)
    by_hand = np.zeros((30, 30))
    for row in rows:
        for i, a in enumerate(row):
            for b in row[i + 1 : i + 4]:
                by_hand[a, b] += 1
                by_hand[b, a] += 1
    np.testing.assert_array_equal(whole, by_hand)


def test_association_is_the_log_of_how_much_likelier_a_context_is_here():
    # n(w) = 2, 3, 1 of 6: PMI(0, 1) = ln(2 * 6 / (2 * 3)), PMI(1, 2) = ln(1 * 6 / (3 * 1))
    plain = ppmi(cooccurrences(ROWS, 3, window=1), smoothing=1).toarray()
    np.testing.assert_allclose(plain, LN2 * np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), rtol=1e-15)
    # q = (2, 3, 1)^(3/4) / 4.961300: 0.338982, 0.459458, 0.201560
    smooth = ppmi(cooccurrences(ROWS, 3, window=1)).toarray()
    expected = [[0, 0.777709, 0], [0.676342, 0, 0.503055], [0, 0.777709, 0]]
    np.testing.assert_allclose(smooth, expected, atol=5e-7)


def test_a_pair_rarer_than_chance_counts_as_nothing():
    # n(0, 1) = 1 of n(0) = n(1) = 5, all = 10: chance expects 2.5
    counts = cooccurrences([np.array([0, 0]), np.array([0, 0]), np.array([1, 1]), np.array([1, 1]), ROWS[1]], 2)
    association = ppmi(counts, smoothing=1)
    np.testing.assert_allclose(association.toarray(), np.log(1.6) * np.eye(2), rtol=1e-15)
    assert association.nnz == 2


def test_vectors_are_the_roots_of_the_largest_singular_values():
    association = ppmi(cooccurrences(ROWS, 5, window=1), smoothing=1)
    words, vectors = ppmi_vectors(association, 4)
    np.testing.assert_array_equal(words, [0, 1, 2])  # 3 and 4 never occur
    assert vectors.shape == (3, 2)  # two singular values, both ln 2 sqrt 2; the third is 0
    # U S U^T is the root of PPMI PPMI^T = ln^2 2 (1 0 1; 0 2 0; 1 0 1)
    root = LN2 * np.sqrt(0.5) * np.array([[1, 0, 1], [0, 2, 0], [1, 0, 1]])
    np.testing.assert_allclose(vectors @ vectors.T, root, atol=1e-15)


def test_texts_without_a_pair_have_no_vectors():
    words, vectors = ppmi_vectors(ppmi(cooccurrences([np.array([2]), np.array([], int)], 3)), 4)
    assert len(words) == 0 and vectors.shape == (0, 0)
    assert cooccurrences([], 3).nnz == 0


def test_full_and_sparse_decomposition_agree(monkeypatch):
    generator = np.random.default_rng(1)
    rows = [generator.zipf(1.3, 20) % 60 for _ in range(200)]
    association = ppmi(cooccurrences(rows, 60))
    words, full = ppmi_vectors(association, 4)
    monkeypatch.setattr(module, "DENSE", 0)
    again, sparse = ppmi_vectors(association, 4)
    np.testing.assert_array_equal(again, words)
    np.testing.assert_allclose(sparse, full, atol=2e-3 * np.abs(full).max())
    largest = np.abs(full).argmax(axis=0)
    assert (full[largest, np.arange(4)] > 0).all()


def test_more_iterations_come_closer_to_the_largest_singular_values():
    matrix = csr_array(np.random.default_rng(2).standard_normal((80, 60)))
    exact = np.linalg.svd(matrix.toarray())[1][:3]
    errors = [np.abs(largest_singular(matrix, 3, iterations)[1][:3] / exact - 1).max() for iterations in (0, 2, 12)]
    assert errors[0] > 0.05 > errors[1] > 1e-3 > 1e-6 > errors[2]
    left, values = largest_singular(matrix, 3, 12)
    np.testing.assert_allclose(left.T @ left, np.eye(3 + SPARE), atol=1e-13)
    np.testing.assert_allclose(np.linalg.norm(matrix.T @ left[:, :3], axis=0), values[:3], rtol=1e-6)


def test_the_same_counts_give_the_same_bits_where_singular_values_repeat(monkeypatch):
    monkeypatch.setattr(module, "DENSE", 0)
    rows = [np.array([i % 10, 10 + i]) for i in range(200)]  # ten words with twenty companions each: rank 20
    association = ppmi(cooccurrences(rows, 210))
    _, vectors = ppmi_vectors(association, 40)
    assert vectors.shape == (210, 20)
    assert vectors.tobytes() == ppmi_vectors(association, 40)[1].tobytes()
    full = association.toarray()
    values, directions = np.linalg.eigh(full @ full.T)
    root = (directions * np.sqrt(np.maximum(values, 0))) @ directions.T
    np.testing.assert_allclose(vectors @ vectors.T, root, atol=5e-6)  # float32


TEXTS = ["the cat sat on the mat", "the dog sat on the rug", "a cat and a dog", "mat and rug"] * 5


def encoder_of(**options):
    config = TrainingConfig(vocab=100, width=8, heads=2, max_length=16, **options)
    return initial_encoder(config, TEXTS, "cpu")


def test_a_new_encoder_begins_with_counted_vectors_of_the_words_that_occur():
    counted, drawn = encoder_of(word_vectors="ppmi"), encoder_of(word_vectors="random")
    tokenizer = counted.tokenizer
    rows, _ = tokenizer.encode(TEXTS, 16)
    seen = np.unique(np.concatenate([row[1:-1] for row in rows]))
    unseen = np.setdiff1d(np.arange(tokenizer.vocab_size), seen)
    assert {tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id} <= set(unseen)
    word, before = counted.params["embeddings.word"], drawn.params["embeddings.word"]
    assert np.sqrt(np.mean(word[seen] ** 2)) == pytest.approx(WORD_STD, rel=1e-6)
    assert WORD_STD == 20 * INITIAL_STD
    np.testing.assert_array_equal(word[unseen], before[unseen])
    _, vectors = ppmi_vectors(ppmi(cooccurrences([row[1:-1] for row in rows], len(word))), 8)
    scale = WORD_STD / np.sqrt(np.mean(vectors**2))
    np.testing.assert_allclose(word[seen], scale * vectors, rtol=1e-6)
    for name in counted.params.keys() - {"embeddings.word"}:
        np.testing.assert_array_equal(counted.params[name], drawn.params[name], err_msg=name)


def test_columns_that_the_counts_do_not_fill_stay_as_drawn():
    texts = ["ab", "ab cd"]
    make = {"vocab": 100, "width": 64, "heads": 2, "max_length": 16}
    counted = initial_encoder(TrainingConfig(word_vectors="ppmi", **make), texts, "cpu").params["embeddings.word"]
    drawn = initial_encoder(TrainingConfig(word_vectors="random", **make), texts, "cpu").params["embeddings.word"]
    changed = np.flatnonzero((counted != drawn).any(axis=0))
    np.testing.assert_array_equal(changed, [0, 1])  # two words, two singular values
