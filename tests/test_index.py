"""Indexes: order, version, metric, closing; the approximate one where usearch is installed; prefixes and reranking."""

import gc
import sys
import weakref

import numpy as np
import pytest

from nano_simcse.errors import InputError, MetricMismatch, StaleIndex
from nano_simcse.index import (
    ApproximateIndex,
    ExactIndex,
    PrefixedEncoder,
    check_metric,
    recall_gap,
    rerank,
)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def approximate(*arguments, **options):
    pytest.importorskip("usearch")
    return ApproximateIndex(*arguments, **options)


KINDS = [ExactIndex, approximate]


@pytest.mark.parametrize("kind", KINDS)
def test_search_gives_cosines_best_first_and_at_most_all_rows(kind):
    x, q = draw(30, 6).astype(np.float32), draw(4, 6, seed=1).astype(np.float32)
    cosines = q @ x.T / np.linalg.norm(q, axis=1)[:, None] / np.linalg.norm(x, axis=1)
    for k in (1, 5, 30, 99):
        rows, scores = kind(x, "v").search(q, k, "v")
        np.testing.assert_array_equal(rows, np.argsort(-cosines, axis=1)[:, :k])
        np.testing.assert_allclose(scores, np.sort(cosines, axis=1)[:, ::-1][:, :k], rtol=1e-5, atol=1e-6)


def test_ties_stand_in_order_of_the_rows_to_the_bit():
    x = draw(1, 40).astype(np.float32).repeat(50, axis=0) * np.array([[1.0], [2.0]] * 25, np.float32)
    rows, scores = ExactIndex(x, "v").search(draw(3, 40, seed=1).astype(np.float32), 50, "v")
    np.testing.assert_array_equal(rows, np.arange(50) + np.zeros((3, 1), int))
    assert np.unique(scores[0]).size == 1


def test_length_does_not_matter_to_an_index_by_cosine():
    rows, _ = ExactIndex(np.array([[1.0, 0.0], [3.0, 3.0]]), "v").search(np.array([[1.0, 0.0]]), 2, "v")
    assert rows.tolist() == [[0, 1]]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_another_encoder_are_refused(kind):
    index = kind(draw(5, 3), "old")
    with pytest.raises(StaleIndex, match="holds rows of encoder old, the queries come from new"):
        index.search(draw(1, 3), 1, "new")
    with pytest.raises(StaleIndex, match="holds rows of encoder old, the rows come from new"):
        index.add(draw(1, 3), "new")
    assert len(index) == 5
    assert index.add(draw(2, 3, seed=1), "old").tolist() == [5, 6] and len(index) == 7
    assert sorted(index.search(draw(1, 3), 7, "old")[0][0].tolist()) == list(range(7))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_another_width_are_refused_and_leave_the_index_as_it_was(kind):
    index = kind(draw(5, 3), "v")
    with pytest.raises(InputError, match="queries are 2 wide, but the index holds rows of width 3"):
        index.search(draw(1, 2), 1, "v")
    with pytest.raises(InputError, match="embeddings are 4 wide, but the index holds rows of width 3"):
        index.add(draw(1, 4), "v")
    assert len(index) == 5 and index.search(draw(1, 3), 9, "v")[0].shape == (1, 5)
    index.replace(draw(5, 2), "w")  # another encoder may have another width
    assert index.search(draw(1, 2), 9, "w")[0].shape == (1, 5)


@pytest.mark.parametrize("kind", KINDS)
def test_no_queries_find_nothing_and_no_rows_are_no_index(kind):
    x = draw(5, 3).astype(np.float32)
    index = kind(x, "v")
    rows, scores = index.search(x[:0], 2, "v")
    assert rows.shape == scores.shape == (0, 2) and rows.dtype == np.int64 and scores.dtype == np.float32
    assert index.add(x[:0], "v").tolist() == [] and len(index) == 5
    with pytest.raises(InputError, match="corpus is empty"):
        kind(x[:0], "v")


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_encoder_replaces_all_rows_or_none(kind):
    index, before = kind(draw(5, 3), "old"), draw(1, 3, seed=4)
    kept = index.search(before, 5, "old")[0]
    with pytest.raises(StaleIndex, match="6 rows were embedded by new, but the index holds 5; replace these first"):
        index.replace(draw(6, 3), "new")
    with pytest.raises(StaleIndex, match="4 of 5 rows were embedded by new"):
        index.replace(draw(4, 3), "new")
    np.testing.assert_array_equal(index.search(before, 5, "old")[0], kept)
    fresh = draw(5, 3, seed=2)
    index.replace(fresh, "new")
    assert index.version == "new"
    expected = ExactIndex(fresh, "new").search(before, 5, "new")[0]
    np.testing.assert_array_equal(index.search(before, 5, "new")[0], expected)


def test_replacing_keeps_the_settings_of_the_graph():
    index = approximate(draw(20, 4), "old", connectivity=7, build_effort=30, search_effort=20)
    index.replace(draw(20, 4, seed=1), "new")
    assert (index._graph.connectivity, index._graph.expansion_add, index._graph.expansion_search) == (7, 30, 20)


@pytest.mark.parametrize("kind", KINDS)
def test_inner_product_is_accepted_for_unit_rows_only(kind):
    x = draw(5, 3)
    with pytest.raises(MetricMismatch, match=r"row 0 has length \d\.\d+; an inner product ranks as the cosine only"):
        kind(x, "v", metric="inner product")
    with pytest.raises(MetricMismatch, match="metric 'euclidean' is not cosine or inner product"):
        kind(x, "v", metric="euclidean")
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    index = kind(unit, "v", metric="inner product")
    with pytest.raises(MetricMismatch):
        index.search(2 * unit[:1], 1, "v")
    with pytest.raises(MetricMismatch):
        index.add(2 * unit[:1], "v")
    np.testing.assert_array_equal(index.search(unit, 5, "v")[0], kind(x, "v").search(x, 5, "v")[0])
    check_metric(unit.astype(np.float16), "inner product")


@pytest.mark.parametrize("kind", KINDS)
def test_closing_is_real_and_final(kind):
    with kind(draw(5, 3), "v") as index:
        held = weakref.ref(index._unit) if kind is ExactIndex else None
        assert len(index.search(draw(1, 3), 2, "v")[0][0]) == 2
    gc.collect()
    assert len(index) == 0 and (held is None or held() is None)
    for use in (lambda: index.search(draw(1, 3), 1, "v"), lambda: index.add(draw(1, 3), "v"),
                lambda: index.replace(draw(5, 3), "w")):  # fmt: skip
        with pytest.raises(InputError, match="the index is closed"):
            use()
    index.close()


def test_an_error_inside_the_block_closes_too():
    with pytest.raises(RuntimeError), ExactIndex(draw(2, 2), "v") as index:
        raise RuntimeError
    assert len(index) == 0


@pytest.mark.parametrize("call, message", [
    (lambda: ExactIndex(draw(2, 2), ""), "version is ''; expected the fingerprint"),
    (lambda: ExactIndex(draw(2, 2), None), "version is None"),
    (lambda: ExactIndex(np.zeros((2, 2)), "v"), "zero vector"),
    (lambda: ExactIndex(np.ones((0, 2)), "v"), "corpus is empty"),
    (lambda: ExactIndex(draw(2, 2), "v").search(draw(1, 3), 1, "v"), "queries are 3 wide"),
    (lambda: ExactIndex(draw(2, 2), "v").search(draw(1, 2), 0, "v"), "k must be an integer >= 1, got 0"),
    (lambda: ExactIndex([[1.0, 2.0], [3.0]], "v", "inner product"), "not a table of numbers"),
    (lambda: recall_gap(np.zeros((2, 3)), np.zeros((3, 3))), "row numbers of the same queries"),
    (lambda: rerank(np.zeros(3, int), None, 1), r"rows \(3,\)"),
    (lambda: rerank(np.zeros((1, 3), int), lambda i, rows: [0.0], 1), "the judge gave scores of shape"),
])  # fmt: skip
def test_bad_arguments_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_a_missing_usearch_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "usearch", None)
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(InputError, match=r"needs usearch .*pip install 'nano_simcse\[approximate\]'"):
        ApproximateIndex(draw(2, 2), "v")


def test_the_approximate_index_misses_less_with_more_effort_and_repeats_itself():
    x, q = draw(1500, 24), draw(60, 24, seed=1)
    exact = ExactIndex(x, "v").search(q, 10, "v")[0]
    found = [approximate(x, "v", connectivity=6, build_effort=24, search_effort=e).search(q, 10, "v")[0]
             for e in (10, 10, 400)]
    np.testing.assert_array_equal(found[0], found[1])
    assert recall_gap(found[0], exact) > 0.1 > 0.02 > recall_gap(found[2], exact)


def test_recall_gap_by_hand():
    assert recall_gap([[1, 2, 9], [4, 5, 6]], [[1, 2], [7, 4]]) == 0.25
    assert recall_gap([[1, 2]], [[2, 1]]) == 0


def test_rerank_orders_by_the_judge_and_keeps_ties_in_order():
    truth = np.array([5.0, 1.0, 5.0, 9.0])
    rows = rerank(np.array([[2, 1, 0]]), lambda i, found: truth[found], 3)
    assert rows.tolist() == [[2, 0, 1]]  # row 3 was never retrieved
    assert rerank(np.array([[2, 1, 0], [3, 1, 0]]), lambda i, found: i * truth[found], 1).tolist() == [[2], [3]]


class Letters:
    """Counts letters: an encoder one can check by eye."""

    def encode(self, texts):
        return np.array([[text.count(c) + 1 for c in "abq"] for text in texts], float)

    def fingerprint(self):
        return "letters"


def test_prefixes_stand_before_the_text_and_in_the_fingerprint():
    bare, with_prefix = PrefixedEncoder(Letters()), PrefixedEncoder(Letters(), "qq: ", "b: ")
    np.testing.assert_array_equal(with_prefix.encode_queries(["a"]), [[2, 1, 3]])
    np.testing.assert_array_equal(with_prefix.encode_documents(["a"]), [[2, 2, 1]])
    swapped = PrefixedEncoder(Letters(), "b: ", "qq: ")
    assert len({bare.fingerprint(), with_prefix.fingerprint(), swapped.fingerprint(), "letters"}) == 4
    index = ExactIndex(with_prefix.encode_documents(["a", "b"]), with_prefix.fingerprint())
    with pytest.raises(StaleIndex):
        index.search(bare.encode_queries(["a"]), 1, bare.fingerprint())


@pytest.mark.parametrize("name", ["encode_queries", "encode_documents"])
def test_one_text_in_place_of_a_list_is_not_read_letter_by_letter(name):
    with pytest.raises(InputError, match="sentences is 'a blue dog', a str; expected a list of strings"):
        getattr(PrefixedEncoder(Letters(), "q: ", "b: "), name)("a blue dog")
