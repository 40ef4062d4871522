"""The suite of STS sets, its average and geometry, and recall on pairs: by hand, then as a command."""

import dataclasses
import gzip
import json
import math

import numpy as np
import pytest
from command_line import command, untrained_model
from shared_data import shared_path
from test_evaluation import Lookup
from tiny import pairs, sentences

from nano_simcse import downloads, partners
from nano_simcse.data.readers import STSPair
from nano_simcse.errors import InputError
from nano_simcse.protocol import (
    DEV,
    TESTS,
    evaluate_pairs,
    evaluate_sets,
    find_suite,
    read_set,
    read_suite,
    sts_geometry,
    suite_average,
)

# cosines with "a": b .6, c 0, d -1, e .8
TABLE = {"a": [1, 0], "b": [3, 4], "c": [0, 2], "d": [-5, 0], "e": [4, -3]}


def write(path, rows, names="sentence1\tsentence2\tscore"):
    text = "\n".join([names, *("\t".join(map(str, row)) for row in rows)]) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode("utf-8")) if path.suffix == ".gz" else text.encode("utf-8"))
    return path


# ---- the suite ----

def test_the_suite_is_found_by_name_and_other_files_are_left_alone(tmp_path):
    for name in ("stsb-dev.tsv", "STS13-test.jsonl.gz", "sts12-test.csv", "stsb-train.tsv", "wiki.txt", "sts12.tsv",
                 ".writing-x-sts14-test.tsv", "sts15-test.tsv.part"):  # fmt: skip
        (tmp_path / name).touch()
    (tmp_path / "sts16-test.tsv").mkdir()
    found = find_suite([tmp_path])
    assert list(found) == ["sts12-test", "sts13-test", "stsb-dev"]
    assert found["sts13-test"] == tmp_path / "STS13-test.jsonl.gz"


def test_several_folders_make_one_suite(tmp_path):
    write(tmp_path / "a" / "stsb-test.tsv", [])
    write(tmp_path / "b" / "sts12-test.tsv", [])
    assert list(find_suite([tmp_path / "a", tmp_path / "b"])) == ["sts12-test", "stsb-test"]
    write(tmp_path / "b" / "stsb-test.jsonl", [])
    with pytest.raises(InputError, match=r"a.stsb-test.tsv and .*b.stsb-test.jsonl are both stsb-test; expected one"):
        find_suite([tmp_path / "a", tmp_path / "b"])


def test_a_folder_without_a_set_is_refused(tmp_path):
    write(tmp_path / "stsb-train.tsv", [])
    with pytest.raises(InputError, match=r"holds no set of the suite; expected files named like sts12-test.tsv"):
        find_suite([tmp_path])
    with pytest.raises(InputError, match="is not a folder"):
        find_suite([tmp_path / "nowhere"])


def test_the_suite_is_what_download_writes():
    written = {file.name.removesuffix(".jsonl.gz") for name in ("sts", "stsb", "sickr")
               for file in downloads.SETS[name].files}  # fmt: skip
    assert written - {"stsb-train"} == {*TESTS, DEV}
    assert len(TESTS) == 7 and DEV not in TESTS


def test_every_set_is_reported_and_the_average_is_over_the_tests_present(tmp_path):
    write(tmp_path / "sts12-test.tsv", [["x", "a", "b", 4], ["x", "a", "e", 5], ["y", "a", "c", 1], ["y", "a", "d", 2]],
          "subset\tsentence1\tsentence2\tscore")  # fmt: skip
    write(tmp_path / "stsb-test.tsv.gz", [["a", "b", 2], ["a", "c", 0], ["a", "d", 1]])
    write(tmp_path / "stsb-dev.tsv", [["a", "b", 5], ["a", "d", 0]])
    encoder = Lookup(TABLE)
    report = evaluate_sets(encoder, read_suite([tmp_path]), 7, False)
    assert encoder.calls == [(["a", "b", "e", "c", "d"], 7, False)]  # once, whatever sets hold a sentence
    sts12, test = report["sets"]["sts12-test"], report["sets"]["stsb-test"]
    # cosines .6 .8 0 -1 have ranks 3 4 2 1, the scores 3 4 1 2: 1 - 6 * 2 / 60; subsets 100 and -100, two rows each
    assert sts12["all"]["spearman"] == pytest.approx(80, abs=1e-12)
    assert sts12["mean"]["spearman"] == pytest.approx(0, abs=1e-12)
    # cosines .6 0 -1 against 2 0 1: ranks 3 2 1 and 3 1 2, 1 - 6 * 2 / 24
    assert test["all"]["spearman"] == pytest.approx(50, abs=1e-12) and "mean" not in test
    assert report["sets"]["stsb-dev"]["spearman"] == pytest.approx(100, abs=1e-12)
    assert report["average"]["spearman"] == pytest.approx((80 + 50) / 2, abs=1e-12)  # without the dev set
    assert report["average"]["over"] == ["sts12-test", "stsb-test"]
    assert report["average"]["missing"] == ["sts13-test", "sts14-test", "sts15-test", "sts16-test", "sickr-test"]
    assert report["geometry"]["set"] == "stsb-dev" and report["geometry"]["sentences"] == 3


def test_the_average_of_all_seven_misses_nothing():
    reports = {name: {"all": {"spearman": float(i)}} for i, name in enumerate(TESTS)}
    assert suite_average({**reports, DEV: {"all": {"spearman": 90.0}}}) == {
        "spearman": 3.0, "over": list(TESTS), "missing": []}  # fmt: skip
    assert suite_average({DEV: reports["stsb-test"]}) is None
    reports["sts14-test"]["all"]["spearman"] = math.nan
    assert math.isnan(suite_average(reports)["spearman"])


def test_without_the_dev_set_the_geometry_is_that_of_the_test_set_or_absent():
    rows = [STSPair("", "a", "b", 4.5), STSPair("", "a", "c", 1)]
    assert evaluate_sets(Lookup(TABLE), {"stsb-test": rows})["geometry"]["set"] == "stsb-test"
    assert evaluate_sets(Lookup(TABLE), {"sts12-test": rows})["geometry"] is None
    assert set(evaluate_sets(Lookup(TABLE), {"my.tsv": rows})) == {"sets"}


# ---- alignment and uniformity ----

class Table(Lookup):
    def encode(self, sentences):
        return super().encode(sentences, None, None)


def test_alignment_over_pairs_above_four_and_uniformity_over_sentences_by_hand():
    rows = [STSPair("", "a", "b", 4.2), STSPair("", "a", "c", 5), STSPair("", "a", "d", 4.0), STSPair("", "a", "b", 0)]
    report = sts_geometry(Table(TABLE), rows)
    # squared distances 2 - 2 cos: a-b .8, a-c 2, a-d 4 (scored 4, not above), b-c .4, b-d 3.2, c-d 2
    assert report["alignment"] == pytest.approx((0.8 + 2) / 2, abs=1e-7)
    assert report["positives"] == 2 and report["sentences"] == 4
    kernel = [math.exp(-2 * d) for d in (0.8, 2, 4, 0.4, 3.2, 2)]
    assert report["uniformity"] == pytest.approx(math.log(sum(kernel) / 6), abs=1e-6)


def test_without_a_pair_above_four_there_is_no_alignment():
    report = sts_geometry(Table(TABLE), [STSPair("", "a", "b", 1.0), STSPair("", "a", "c", 0.2)])
    assert report["alignment"] is None and report["positives"] == 0 and report["uniformity"] < 0


# ---- recall on pairs ----

def test_recall_on_pairs_by_hand():
    report = evaluate_pairs(Lookup(TABLE), [("a", "e"), ("c", "d"), ("d", "b")])
    # candidates e d b. a: e first; c: b .8, d 0, e -.6, so d second; d, without itself: b -.6, e -.8, so b first
    assert report == {"count": 3, "recall_at_1": pytest.approx(200 / 3), "recall_at_5": 100.0, "recall_at_10": 100.0,
                      "mean_reciprocal_rank": pytest.approx((1 + 1 / 2 + 1) / 3), "candidates": 3,
                      "sentences": 5}  # fmt: skip


def test_hard_negatives_are_candidates_too():
    rows = [("a", "b"), ("d", "c")]
    assert evaluate_pairs(Lookup(TABLE), rows)["recall_at_1"] == 100.0
    report = evaluate_pairs(Lookup(TABLE), [("a", "b", "e"), ("c", "d", "b")])
    assert report["recall_at_1"] == 0.0 and report["mean_reciprocal_rank"] == pytest.approx(1 / 2)
    assert report["candidates"] == 3


def test_a_partner_that_several_anchors_share_is_one_candidate():
    report = evaluate_pairs(Lookup(TABLE), [("a", "e"), ("c", "e"), ("d", "b")])
    # c-e has cosine -.6, c-b .8: the second of these finds b first
    assert report["candidates"] == 2 and report["recall_at_1"] == pytest.approx(200 / 3)


def test_another_partner_of_the_same_anchor_is_no_error():
    # a has the partners e (.8) and b (.6); ranking b, e does not stand above it
    assert evaluate_pairs(Lookup(TABLE), [("a", "e"), ("a", "b"), ("d", "c")])["recall_at_1"] == 100.0


def test_the_text_of_the_anchor_is_no_candidate_unless_it_is_the_partner():
    # a: e .8, b .6, itself left out; b, without itself: a .6, e 0; c: b .8, a 0, e -.6
    rows = [("a", "e"), ("b", "a"), ("c", "b")]
    assert evaluate_pairs(Lookup(TABLE), rows)["recall_at_1"] == 100.0
    assert evaluate_pairs(Lookup(TABLE), [("a", "b"), ("b", "a")])["recall_at_1"] == 100.0
    assert evaluate_pairs(Lookup(TABLE), [("a", "a"), ("d", "b")])["recall_at_1"] == 100.0
    # and where another text is as near, the tie counts against it
    table = {**TABLE, "again": TABLE["a"]}
    assert evaluate_pairs(Lookup(table), [("a", "a"), ("d", "again")])["mean_reciprocal_rank"] == 0.5


def test_ties_count_against_the_anchor():
    table = {"q": [1, 0], "r": [0, 1], "x": [1, 1], "y": [2, 2]}
    report = evaluate_pairs(Lookup(table), [("q", "x"), ("r", "y")])
    assert report["recall_at_1"] == 0.0 and report["mean_reciprocal_rank"] == 0.5


def test_a_collapsed_encoder_finds_nobody():
    # Rows that differ in length only have cosine 1 up to rounding; the rounding must not be ranked.
    rng = np.random.default_rng(0)
    direction = rng.standard_normal(64)
    encoder = Lookup({str(i): direction * (1 + i / 7) for i in range(40)})
    report = evaluate_pairs(encoder, [(str(i), str(i + 20)) for i in range(20)])
    assert report["recall_at_10"] == 0.0 and report["mean_reciprocal_rank"] == pytest.approx(1 / 20)


def test_recall_in_blocks_equals_one_block(monkeypatch):
    rng = np.random.default_rng(0)
    encoder = Lookup({str(i): rng.standard_normal(6) for i in range(60)})
    rows = [(str(i), str(i + 30), str((7 * i) % 60)) for i in range(30)] + [("0", "35", "41")]
    whole = evaluate_pairs(encoder, rows)
    monkeypatch.setattr(partners, "_BLOCK_CELLS", 100)
    assert evaluate_pairs(encoder, rows) == whole
    assert 0 < whole["recall_at_10"] < 100


def test_no_pairs_and_wrong_shapes_are_named():
    with pytest.raises(InputError, match="no pair to evaluate"):
        evaluate_pairs(Lookup(TABLE), [])
    encoder = Lookup(TABLE)
    encoder.encode = lambda sentences, **_: np.ones((len(sentences), 2, 2))
    with pytest.raises(InputError, match=r"\(2, 2, 2\) for 2 sentences"):
        evaluate_sets(encoder, {"x": [STSPair("", "a", "b", 1), STSPair("", "a", "b", 2)]})


# ---- files ----

@pytest.mark.parametrize(("name", "content", "words"), [
    ("x.tsv", "sentence1\tsentence2\tscore\na\tb\t3\na\tc\t3\n", r"x.tsv: all 2 gold scores are 3"),
    ("x.tsv", "subset\tsentence1\tsentence2\tscore\ns\ta\tb\t3\n\ta\tc\t2\n", r"x.tsv: 1 of 2 pairs have no subset"),
    ("x.tsv", "a\tb\t3\na\tc\t4.5\n", "third column, where sentences were expected; scores need a first line"),
    ("x.tsv", "a\tb\nc\tb\n", "x.tsv holds one partner only"),
    ("x.tsv", "sentence1\tsentence2\tscore\na\tb\n", "x.tsv, line 2: 2 columns; expected 3"),
    ("x.jsonl", '{"sentence1": "a", "score": 2}\n', "x.jsonl, line 1: the keys 'sentence1', 'score'; expected anchor"),
    ("x.txt", "a\nb\n", "x.txt has no columns; expected a .tsv, .csv or .jsonl file"),
    ("x.tsv", "", "x.tsv is empty"),
])  # fmt: skip
def test_files_that_cannot_be_evaluated_are_named(tmp_path, name, content, words):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        read_set(tmp_path / name)


def test_a_set_of_the_suite_needs_scores(tmp_path):
    write(tmp_path / "sts12-test.tsv", [["a", "b"]], "sentence1\tsentence2")
    with pytest.raises(InputError, match="expected sentence1, sentence2, score"):
        evaluate_sets(Lookup(TABLE), read_suite([tmp_path]))


# ---- the command ----

@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return untrained_model(tmp_path_factory.mktemp("protocol") / "model")


@pytest.fixture
def suite(tmp_path):
    rows = [[a, b, i % 6] for i, (a, b) in enumerate(zip(sentences(30), sentences(60)[30:], strict=True))]
    write(tmp_path / "suite" / "sts12-test.tsv", [["xy"[i % 2], *row] for i, row in enumerate(rows)],
          "subset\tsentence1\tsentence2\tscore")  # fmt: skip
    write(tmp_path / "suite" / "stsb-test.tsv", rows[:12])
    write(tmp_path / "suite" / "stsb-dev.tsv", rows[12:])
    write(tmp_path / "pairs.tsv", pairs(20), "anchor\tpositive")
    return tmp_path


def test_evaluate_prints_the_suite_the_average_and_what_is_missing(model, suite, capsys):
    output = command(capsys, "evaluate", suite / "suite", suite / "pairs.tsv", "--model", model, "--json").out
    *lines, last = output.splitlines()
    (reading,) = json.loads(last)["readings"]
    assert lines[0] == "pooling mean"
    assert lines[1].split() == ["n", "all", "mean", "wmean", "pearson"]
    labels = [line[:17].strip() for line in lines[2:6]]
    assert labels == ["sts12-test", "stsb-test", "average of 2 of 7", "stsb-dev"]
    sets, average = reading["sets"], reading["average"]
    assert lines[2].split()[1:] == ["30", *(f"{sets['sts12-test'][key]['spearman']:.2f}" for key in
                                            ("all", "mean", "wmean")), f"{sets['sts12-test']['pearson']:.2f}"]
    assert lines[4].split()[-1] == f"{average['spearman']:.2f}"
    assert lines[6] == "missing: sts13-test, sts14-test, sts15-test, sts16-test, sickr-test"
    assert lines[7].startswith("stsb-dev: alignment ") and "(3 pairs scored above 4), uniformity -" in lines[7]
    found = sets[str(suite / "pairs.tsv")]
    assert lines[8].split() == ["n", "of", "recall@1", "recall@5", "recall@10", "MRR"]
    assert lines[9].split()[:4] == ["pairs.tsv", "20", "20", f"{found['recall_at_1']:.2f}"]


def test_evaluate_reads_one_checkpoint_in_several_ways(model, suite, capsys):
    readings = "mean,cls_before_pooler", "--pooling", "avg_top2", "--pooling", "mean"
    output = command(capsys, "evaluate", suite / "suite", "--model", model, "--json", "--pooling", *readings).out
    found = json.loads(output.splitlines()[-1])["readings"]
    assert [reading["pooling"] for reading in found] == ["mean", "cls_before_pooler", "avg_top2"]
    header = next(i for i, line in enumerate(output.splitlines()) if "sts12 " in line and "uniformity" in line)
    for reading, line in zip(found, output.splitlines()[header + 1 :], strict=False):
        name, sts12, *_, uniformity = line.split()
        assert name == reading["pooling"]
        assert sts12 == f"{reading['sets']['sts12-test']['all']['spearman']:.2f}"
        assert uniformity == f"{reading['geometry']['uniformity']:.3f}"
    alone = command(capsys, "evaluate", suite / "suite", "--model", model, "--json", "--pooling", "cls_before_pooler")
    assert json.loads(alone.out.splitlines()[-1])["readings"] == [found[1]]
    assert len({reading["geometry"]["uniformity"] for reading in found}) == 3


def test_what_download_wrote_is_evaluated_by_its_folder(model, tmp_path, capsys, monkeypatch):
    def fetch(repo, names, **_):
        """Files of the hub in their shape: one object a line, more keys than are read, no subsets."""
        (tmp_path / repo).mkdir(parents=True, exist_ok=True)
        for name in names:
            rows = [{"split": "x", "sentence1": a, "sentence2": b, "score": i % 5} for i, (a, b) in
                    enumerate(zip(sentences(6), sentences(12)[6:], strict=True))]  # fmt: skip
            (tmp_path / repo / name).write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode("utf-8")))
        return tmp_path / repo

    monkeypatch.setattr(downloads, "fetch", fetch)
    for name in ("stsb", "sts", "sickr"):
        files = tuple(dataclasses.replace(file, pairs=6) for file in downloads.SETS[name].files)
        monkeypatch.setitem(downloads.SETS, name, downloads.PublicSet(files))
    data = tmp_path / "data"
    output = command(capsys, "download", "stsb", "sts", "sickr", "--to", data).out
    assert output.splitlines()[-1] == f"use it with: nano-simcse evaluate {data} --model MODEL"
    *lines, last = command(capsys, "evaluate", data, "--model", model, "--json").out.splitlines()
    assert [line.split("  ")[0] for line in lines[2:11]] == [*TESTS, "average of the 7", DEV]
    (reading,) = json.loads(last)["readings"]
    assert list(reading["sets"]) == [*TESTS, DEV] and reading["average"]["missing"] == []
    assert "missing" not in "".join(lines)


def test_the_command_refuses_before_it_loads_a_model(suite, capsys):
    constant = write(suite / "c.tsv", [["a", "b", 1], ["a", "c", 1]])
    message = command(capsys, "evaluate", suite / "suite", constant, "--model", "nowhere", code=2).err
    assert "c.tsv: all 2 gold scores are 1" in message and message.count("\n") == 1
    message = command(capsys, "evaluate", suite, "--model", "nowhere", code=2).err
    assert "holds no set of the suite" in message
    message = command(capsys, "evaluate", suite, "--model", "nowhere", "--pooling", "mean,cls_befor_pooler", code=2).err
    assert "'cls_befor_pooler' is not one of" in message and "did you mean cls_before_pooler" in message


def test_the_shared_sets_make_a_suite():
    found = find_suite([shared_path("data/sts")])
    assert list(found) == ["sts12-test", "sts13-test", "sts14-test", "stsb-test", "stsb-dev"]
