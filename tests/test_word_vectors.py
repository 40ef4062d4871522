"""Questions to a table of word vectors, on tables small enough to answer by hand."""

import numpy as np
import pytest

from nano_simcse.errors import InputError
from nano_simcse.word_vectors import WordVectors

GRID = WordVectors(
    ["layer", "layers", "token", "tokens", "symbol"],
    np.array([9, 8, 7, 6, 5]),
    np.array([[1, 0, 0], [1, 0, 0.2], [0.6, 0.8, 0], [0.6, 0.8, 0.15], [0.5, 0.85, 0]]),
)


def on_circle(*degrees, lengths=None):
    angle = np.deg2rad(degrees)
    rows = np.column_stack([np.cos(angle), np.sin(angle)])
    rows = rows if lengths is None else rows * np.array(lengths)[:, None]
    return WordVectors([f"w{i}" for i in range(len(degrees))], np.ones(len(degrees), int), rows)


def test_nearest_by_cosine_and_by_dot_product():
    vectors = on_circle(0, 10, 40, 170, lengths=[1, 1, 3, 9])
    assert [w for w, _ in vectors.nearest("w0", 3)] == ["w1", "w2", "w3"]
    assert [w for w, _ in vectors.nearest("w0", 3, "dot")] == ["w2", "w1", "w3"]
    assert vectors.nearest("w0", 1)[0][1] == pytest.approx(np.cos(np.deg2rad(10)))
    assert vectors.nearest("w0", 1, "dot")[0][1] == pytest.approx(3 * np.cos(np.deg2rad(40)))


def test_nearest_never_names_the_word_and_stops_at_the_end():
    assert len(GRID.nearest("layer", 99)) == 4
    assert "layer" not in {w for w, _ in GRID.nearest("layer", 99)}
    assert GRID.nearest("layer", 0) == []


def test_ties_are_listed_by_frequency_and_count_against_a_rank():
    same = WordVectors(["a", "b", "c"], np.ones(3), np.array([[1.0, 0], [0, 1], [0, 1]]))
    assert [w for w, _ in same.nearest("a", 2)] == ["b", "c"]
    assert same.rank("a", "b") == same.rank("a", "c") == 2


def test_a_rank_has_a_direction():
    vectors = on_circle(0, 20, 21, 22, 23, 24, 25)
    assert vectors.rank("w0", "w1") == 1
    assert vectors.rank("w1", "w0") == 6
    assert vectors.cosine("w0", "w1") == pytest.approx(np.cos(np.deg2rad(20)))


def test_an_analogy_by_hand():
    unit = GRID.vectors / np.linalg.norm(GRID.vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(GRID.analogy_query("layer", "layers", "token"), unit[1] - unit[0] + unit[2])
    assert GRID.analogy("layer", "layers", "token")[0][0] == "tokens"
    assert GRID.analogy_rank("layer", "layers", "token", "tokens") == 1
    assert GRID.analogy_rank("layer", "layers", "token", "symbol") == 2


def test_without_the_exclusion_the_question_may_answer_itself():
    bent = WordVectors(GRID.words, GRID.counts, np.vstack([GRID.vectors[:3], [[0.6, 0.8, -0.15]], GRID.vectors[4:]]))
    assert bent.analogy("layer", "layers", "token", exclude_question=False)[0][0] == "token"
    assert bent.analogy("layer", "layers", "token")[0][0] == "symbol"
    assert bent.analogy_rank("layer", "layers", "token", "tokens") == 2


def test_average_skips_unknown_words_and_refuses_only_unknown_ones():
    np.testing.assert_allclose(GRID.average(["layer", "what", "token", "layer"]), [2.6 / 3, 0.8 / 3, 0])
    with pytest.raises(InputError, match="none of the 2 words"):
        GRID.average(["what", "ever"])


def test_lengths_and_membership():
    np.testing.assert_allclose(GRID.lengths[:2], [1, np.sqrt(1.04)])
    assert "token" in GRID and "tokenz" not in GRID


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: GRID.nearest("tokn"), "did you mean 'token'"),
        (lambda: GRID.analogy("layer", "layers", "qqq"), "'qqq' is not among the 5 words$"),
        (lambda: GRID.nearest("token", measure="euclid"), "measure 'euclid' is not one of cosine, dot"),
        (lambda: GRID.rank("token", "token"), "part of the question"),
        (lambda: GRID.average("layer"), "words is 'layer', a str; expected a list of words"),
        (lambda: GRID.analogy_rank("layer", "layers", "token", "layers"), "part of the question"),
    ],
)
def test_bad_questions_are_named(ask, message):
    with pytest.raises(InputError, match=message):
        ask()


def test_a_zero_vector_is_refused_when_directions_are_needed():
    with pytest.raises(InputError, match="row 1 is the zero vector"):
        _ = WordVectors(["a", "b"], np.ones(2), np.array([[1.0, 0], [0, 0]])).unit
