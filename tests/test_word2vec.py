"""Word vectors: counting, thinning, pairing, drawing, and a training run whose answer is known."""

import numpy as np
import pytest
from scipy.stats import chisquare

from nano_simcse.errors import InputError
from nano_simcse.word2vec import (
    count_words,
    noise_probabilities,
    split_words,
    subsample,
    train_word2vec,
    window_pairs,
)

SMALL = {"width": 8, "window": 2, "negatives": 3, "steps": 400, "batch_size": 128, "lr": 0.02, "progress": False}


def two_topics(texts=120, seed=0):
    """Texts about one of two topics; words of a topic are interchangeable, "the" is in both."""
    draw = np.random.default_rng(seed)
    topics = (["apple", "pear", "plum", "fig"], ["rail", "train", "track", "wagon"])
    return [[w for word in draw.choice(topics[i % 2], 8) for w in ("the", str(word))] for i in range(texts)]


def test_words_of_a_text():
    assert split_words("Don't re-read numpy.linalg's X_train, 2nd-order!") == [
        "don't", "re-read", "numpy", "linalg's", "x_train", "2nd-order"]  # fmt: skip


def test_words_are_counted_most_frequent_first_and_rare_ones_left_out():
    words, counts = count_words([["b", "a", "b"], ["c", "a"], ["d"]], min_count=2)
    assert words == ["a", "b"]
    np.testing.assert_array_equal(counts, [2, 2])
    with pytest.raises(InputError, match="no word occurs 3 times"):
        count_words([["a", "b"]], min_count=3)


def brute_pairs(documents, window):
    return sorted(
        (d[i], d[j]) for d in documents for i in range(len(d)) for j in range(len(d)) if 0 < abs(i - j) <= window
    )


@pytest.mark.parametrize("window", [1, 2, 5])
def test_pairs_are_those_of_the_definition_and_never_cross_a_text(window):
    documents = [[0, 1, 2, 3, 1], [4], [], [2, 2], [5, 0, 5]]
    centres, contexts = window_pairs(documents, window)
    assert sorted(zip(centres.tolist(), contexts.tolist(), strict=True)) == brute_pairs(documents, window)
    assert centres.dtype == contexts.dtype == np.int32


def test_a_window_below_one_is_refused():
    with pytest.raises(InputError, match="window is 0"):
        window_pairs([[0, 1]], 0)


def test_noise_is_the_count_to_a_power():
    np.testing.assert_allclose(noise_probabilities([1, 16, 81]), np.array([1, 8, 27]) / 36, rtol=1e-14)
    np.testing.assert_allclose(noise_probabilities([1, 16, 81], 0), 1 / 3)
    np.testing.assert_allclose(noise_probabilities([1, 16, 81], 1), np.array([1, 16, 81]) / 98)


def test_thinning_keeps_the_promised_share_of_each_word():
    documents = [["the"] * 9000 + ["rare"] * 90 + ["mid"] * 910]
    kept = subsample(documents, 0.01, np.random.default_rng(0))[0]
    assert kept.count("rare") == 90  # its share is below the threshold
    expected = {"the": 9000 * np.sqrt(0.01 / 0.9), "mid": 910 * np.sqrt(0.01 / 0.091)}
    for word, count in expected.items():
        assert abs(kept.count(word) - count) < 5 * np.sqrt(count)
    with pytest.raises(InputError, match="threshold is 0"):
        subsample(documents, 0, np.random.default_rng(0))


def test_interchangeable_words_become_neighbours():
    vectors = train_word2vec(two_topics(), **SMALL, seed=0)
    for topic in (["apple", "pear", "plum", "fig"], ["rail", "train", "track", "wagon"]):
        for word in topic:
            found = {w for w, _ in vectors.nearest(word, 3)}
            assert found == set(topic) - {word}
    assert vectors.words[0] == "the"
    assert vectors.losses[-50:].mean() < 4 * np.log(4) - 3 * np.log(3)  # less than a model that knows no word


def test_the_first_loss_is_that_of_a_zero_context_table():
    vectors = train_word2vec(two_topics(), **{**SMALL, "steps": 1})
    assert vectors.losses[0] == pytest.approx(4 * np.log(2), rel=1e-6)
    assert vectors.vectors.dtype == vectors.contexts.dtype == np.float32


def test_one_seed_gives_the_same_bits_and_another_seed_others():
    few = {**SMALL, "steps": 5, "threshold": 0.05}
    first, again, other = (train_word2vec(two_topics(), **few, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.vectors, again.vectors)
    np.testing.assert_array_equal(first.losses, again.losses)
    assert np.abs(first.vectors - other.vectors).max() > 0.01


def test_one_step_moves_only_words_that_were_drawn_and_by_adam_from_the_loss():
    """The update of one batch, recomputed with loops from the same random numbers."""
    documents, settings = two_topics(), {**SMALL, "steps": 1, "batch_size": 4, "schedule": "constant"}
    moved = train_word2vec(documents, **settings, seed=3)
    words, counts = count_words(documents, 5)
    row = {w: i for i, w in enumerate(words)}
    centres, contexts = window_pairs([[row[w] for w in d] for d in documents], 2)
    draw = np.random.default_rng(3)
    start = np.float32(0.1 * draw.standard_normal((len(words), 8)))
    pairs = draw.integers(len(centres), size=4)
    false = np.searchsorted(noise_probabilities(counts).cumsum(), draw.random((4, 3)), side="right")
    gradient = np.zeros_like(start)  # of the contexts; that of the centres is 0, because the contexts are
    for b, pair in enumerate(pairs):
        gradient[contexts[pair]] -= 0.5 * start[centres[pair]] / 4
        for w in false[b]:
            gradient[w] += 0.5 * start[centres[pair]] / 4
    np.testing.assert_array_equal(moved.vectors, start)
    # the first step of Adam is lr * sign, up to eps
    np.testing.assert_allclose(moved.contexts, -0.02 * gradient / (np.abs(gradient) + 1e-8), atol=2e-6)


def test_false_contexts_are_drawn_from_the_noise_distribution():
    q = noise_probabilities([1, 16, 81])
    drawn = np.searchsorted(q.cumsum(), np.random.default_rng(1).random(20000), side="right")
    assert chisquare(np.bincount(drawn, minlength=3), 20000 * q).pvalue > 1e-3


@pytest.mark.parametrize("name", ["width", "window", "negatives", "steps", "batch_size"])
@pytest.mark.parametrize("value", [0, 2.5, True, np.nan])
def test_counts_are_whole_numbers_above_zero(name, value):
    with pytest.raises(InputError, match=f"{name} is {value}.*; expected a whole number"):
        train_word2vec(two_topics(), **{**SMALL, name: value})


@pytest.mark.parametrize(("name", "value"), [
    ("lr", 0), ("lr", -0.1), ("lr", np.nan), ("lr", np.inf), ("lr", "0.1"), ("power", np.nan), ("power", np.inf),
    ("power", None),
])  # fmt: skip
def test_rates_and_powers_are_finite(name, value):
    with pytest.raises(InputError, match=f"{name} is {value!r}; expected a finite number"):
        train_word2vec(two_topics(), **{**SMALL, name: value})


def test_documents_may_come_from_a_generator():
    few = {**SMALL, "steps": 3}
    given, drawn = (train_word2vec(d, **few) for d in (two_topics(), (iter(d) for d in two_topics())))
    np.testing.assert_array_equal(given.vectors, drawn.vectors)


@pytest.mark.parametrize(("documents", "message"), [
    (["a b", "b a"], "document 0 is 'a b', a str; expected a list of words"),
    ([["a", "b"], "b a"], "document 1 is 'b a', a str; expected a list of words"),
    ("a b", "documents is 'a b', a str; expected a list of lists of words"),
    ([["a", "b"], 3], "document 1 is 3, a int; expected a list of words"),
])  # fmt: skip
def test_a_text_that_is_not_split_into_words_is_refused(documents, message):
    with pytest.raises(InputError, match=message):
        train_word2vec(documents, **SMALL, min_count=1)


def test_texts_of_one_word_have_no_pair():
    with pytest.raises(InputError, match="no pair to learn from"):
        train_word2vec([["a"]] * 9, **SMALL)
