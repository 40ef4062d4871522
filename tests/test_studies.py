"""Studies: the plan and what it refuses, the verdicts, and whole studies on made-up text, stopped and gone on with."""

import csv
import json
import math
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from tiny import TINY, pairs, sentences, write_sentences

from nano_simcse import SentenceEncoder, train
from nano_simcse.cli import main
from nano_simcse.errors import CheckpointError, InputError
from nano_simcse.evaluation import spearman
from nano_simcse.studies import TOPICS, load_plan, run_study, verdict
from nano_simcse.studies.plan import FOLDER
from nano_simcse.studies.table import as_text, judged, summary
from nano_simcse.training import loop
from nano_simcse.training.material import gather

SHAPE = {name: value for name, value in TINY.items() if name not in ("steps", "threads")}
PLAN = f"""
title = "Dropout"
varies = "the rate"
seeds = [3, 4]

[train]
{"".join(f"{name} = {value}{chr(10)}" for name, value in SHAPE.items())}
steps = 6
threads = 1
dropout = 0.1

[with_init]
lr = 1e-4

[[arms]]
name = "p = 0"
dropout = 0.0

[[arms]]
name = "p = 0.1"

[[orderings]]
better = "p = 0.1"
worse = "p = 0"
paper = [82.5, 71.1]
table = "Table 3"
"""


RATED = [(text, sentences(60)[(7 * i + 3) % 60], 5 - i % 6) for i, text in enumerate(sentences(60))]


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch, request):
    """Drawing takes most of the time of a run of six steps; one test looks at the pictures."""
    if "test_a_study_is_the_runs_that_train_makes" not in request.node.name:
        monkeypatch.setattr("nano_simcse.studies.run.draw_study", lambda *args: None)
    monkeypatch.setattr("nano_simcse.training.runs.draw_training", lambda *args: None)


@pytest.fixture
def text(tmp_path):
    return write_sentences(tmp_path / "text.txt", 120)


@pytest.fixture
def dev(tmp_path):
    lines = ["\t".join(map(str, row)) for row in RATED]
    return write(tmp_path / "dev.tsv", "sentence1\tsentence2\tscore\n" + "\n".join(lines) + "\n")


@pytest.fixture
def triples(tmp_path):
    rows = [f"{a}\t{p}\t{a.replace('in the morning', 'never')}" for a, p in pairs(200)]
    return write(tmp_path / "triples.tsv", "\n".join(rows) + "\n")


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return path


def plan_of(tmp_path, content=PLAN, **choices):
    return load_plan("mine", write(tmp_path / "plan.toml", content), **choices)


def table(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def without_seconds(path):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in table(path)]


# --- the plan


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("init", [None, "package:some_model"])
def test_every_shipped_study_is_valid(topic, init):
    plan = load_plan(topic, init=init)
    assert plan.seeds == (0, 1, 2) and len(plan.arms) >= 3 and plan.orderings
    assert all(arm.options.get("init") == init for arm in plan.arms)
    for ordering in plan.orderings:
        assert (ordering.paper is None) == (ordering.table is None)


def test_the_shipped_files_are_the_topics():
    assert sorted(file.stem for file in FOLDER.glob("*.toml")) == sorted(TOPICS)


def test_arms_take_the_common_options_and_their_own(tmp_path):
    plan = plan_of(tmp_path)
    first, second = plan.arms
    assert (first.options["dropout"], second.options["dropout"]) == (0.0, 0.1)
    assert first.options["width"] == 16 and first.options["steps"] == 6 and "lr" not in first.options
    assert plan_of(tmp_path, init="x").arms[0].options["lr"] == 1e-4
    chosen = plan_of(tmp_path, seeds=[7], steps=9, threads=2, arms=["p = 0"])
    assert chosen.seeds == (7,) and [arm.name for arm in chosen.arms] == ["p = 0"] and chosen.orderings == ()
    assert chosen.arms[0].options["steps"] == 9 and chosen.arms[0].options["threads"] == 2


def test_arms_of_one_number_of_examples():
    """64 x 200 examples whatever the batch, measured as often; and so where the steps come from the command line."""
    for steps, expected in ((None, 64 * 200), (40, 64 * 40)):
        arms = load_plan("batch", steps=steps).arms
        assert [arm.options["batch"] for arm in arms] == [16, 32, 64, 128]
        assert {arm.options["batch"] * arm.options["steps"] for arm in arms} == {expected}
        assert {arm.options["batch"] * arm.options["eval_every"] for arm in arms} == {64 * 100}


def test_an_arm_of_no_steps_is_read_only():
    arms = {arm.name: arm for arm in load_plan("whitening", init="x", steps=7).arms}
    assert [arms[name].trained for name in ("raw", "centred", "whitened", "trained")] == [False, False, False, True]
    assert arms["whitened"].transform == "whiten" and "steps" not in arms["raw"].options
    assert arms["trained"].options["steps"] == 7


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('dropout = 0.0', 'droput = 0.0', r"arm 'p = 0': option 'droput' does not exist; did you mean dropout\?"),
        ('dropout = 0.0', 'dropout = 1.5', r"arm 'p = 0': dropout is 1.5; expected a rate in \[0, 1\)"),
        ('dropout = 0.0', 'seed = 1', "arm 'p = 0': option 'seed' is no choice of an arm; expected seeds"),
        ('dropout = 0.0', 'columns = ["positive"]', r"arm 'p = 0': columns are \['positive'\]; expected one of"),
        ('dropout = 0.0', 'columns = ["anchor", 3]', r"columns are \['anchor', 3\]; expected one of"),
        ('dropout = 0.0', 'columns = 3', "columns are 3; expected one of"),
        ('dropout = 0.0', 'transform = "whitening"', "transform 'whitening' is not one of "),
        ('dropout = 0.0', 'transform = "whiten"', "for a model that is not trained; expected steps = 0"),
        ('dropout = 0.0', 'steps = -1', "arm 'p = 0': steps is -1; expected at least 1"),
        ('dropout = 0.1', 'dropuot = 0.1', r"\[train\]: option 'dropuot' does not exist"),
        ('lr = 1e-4', 'lr = 0', r"\[with_init\]: lr is 0; expected a finite number above 0"),
        ('name = "p = 0.1"', 'name = "p = 0"', "two arms have one name, 'p = 0' and 'p = 0'"),
        ('name = "p = 0.1"', 'name = "p  =  0"', "two arms have one name"),
        ('name = "p = 0.1"', 'name = "a,b"', "an arm's name is 'a,b'; expected text without a comma"),
        ('name = "p = 0.1"', 'steps = 3', "an arm's name is None"),
        ('worse = "p = 0"', 'worse = "p = 2"', r"an ordering's worse is 'p = 2', which names no arm; did you mean"),
        ('worse = "p = 0"', 'worse = "p = 0.1"', "compares 'p = 0.1' with itself"),
        ('worse = "p = 0"', '', "an ordering's worse is None, which names no arm"),
        ('worse = "p = 0"', 'worst = "p = 0"', "'worst', which does not exist; did you mean worse"),
        ('paper = [82.5, 71.1]', 'paper = [71.1, 82.5]', "expected the larger one first"),
        ('paper = [82.5, 71.1]', 'paper = 82.5', "paper = 82.5; expected two numbers"),
        ('paper = [82.5, 71.1]', '', "paper or table; expected both or neither"),
        ('seeds = [3, 4]', 'seeds = []', r"seeds are \[\]; expected at least one, each once"),
        ('seeds = [3, 4]', 'seeds = [3, 3]', r"seeds are \[3, 3\]; expected at least one, each once"),
        ('seeds = [3, 4]', 'seeds = [-3]', "seed is -3; expected at least 0"),
        ('seeds = [3, 4]', 'seeds = 3', "seeds is 3; expected a list"),
        ('seeds = [3, 4]', '', "has no seeds"),
        ('seeds = [3, 4]', 'seeds = [3]\nneeds = ["tripels"]', "needs names 'tripels'.*did you mean triples"),
        ('seeds = [3, 4]', 'seed = [3, 4]', "'seed' does not exist; did you mean seeds"),
        ('seeds = [3, 4]', 'seeds = [3, 4', "is not valid TOML"),
    ],
)  # fmt: skip
def test_a_plan_that_does_not_fit_gets_one_sentence(tmp_path, old, new, words):
    assert PLAN.count(old) >= 1
    with pytest.raises(InputError, match=words) as found:
        plan_of(tmp_path, PLAN.replace(old, new, 1))
    assert "\n" not in str(found.value).split(" is not valid TOML")[0] and "plan.toml" in str(found.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda path: load_plan("dropuot"), "study 'dropuot' is not one of dropout, .*; did you mean dropout"),
        (lambda path: load_plan("../x", path), "'../x' cannot name the files of a study"),
        (lambda path: load_plan("x", path.with_name("none.toml")), r"none.toml' cannot be read \(No such file"),
        (lambda path: load_plan("x", path, arms=["p = 0.2"]), "study x has no arm 'p = 0.2'; did you mean p = 0.1"),
        (lambda path: load_plan("x", path, seeds=[]), "expected at least one"),
        (lambda path: load_plan("x", path, steps=0.5), "steps is 0.5; expected at least 1"),
        (lambda path: load_plan("x", path, arms=[]), "no arm is chosen; expected one of p = 0, p = 0.1"),
    ],
)
def test_a_call_that_does_not_fit_gets_one_sentence(tmp_path, call, words):
    with pytest.raises(InputError, match=words):
        call(write(tmp_path / "plan.toml", PLAN))


def test_a_number_of_steps_that_is_none(tmp_path):
    for steps in (0, -3):
        with pytest.raises(InputError, match=f"steps is {steps}"):
            load_plan("batch", steps=steps)


def test_a_model_that_was_trained_again_is_another_model(text, tmp_path):
    train(text, out=tmp_path / "model", **TINY)
    plan = load_plan("mine", write(tmp_path / "plan.toml", READ), init=str(tmp_path / "model"), arms=["raw"])
    run_study(plan, text, out=tmp_path / "s")
    assert run_study(plan, text, out=tmp_path / "s").finished
    train(text, out=tmp_path / "model", overwrite=True, **TINY | {"seed": 5})
    with pytest.raises(InputError, match=r"the model is not what the run .*raw-seed0 was started on another model"):
        run_study(plan, text, out=tmp_path / "s")


def test_a_plan_without_arms(tmp_path):
    with pytest.raises(InputError, match="arms is empty"):
        plan_of(tmp_path, 'title = "x"\nvaries = "y"\nseeds = [0]\narms = []')


# --- verdicts


@pytest.mark.parametrize(
    ("better", "worse", "answer", "difference", "spread"),
    [
        ((80.0, 82.0, 84.0), (79.0, 80.0, 81.0), "reproduced", 2.0, 1.0),  # differences 1, 2, 3
        ((79.0, 80.0, 81.0), (80.0, 82.0, 84.0), "not reproduced", -2.0, 1.0),
        ((80.0, 82.0, 84.0), (81.0, 81.0, 81.0), "undecided", 1.0, 2.0),  # -1, 1, 3
        ((80.0, 81.0, 82.0), (79.0, 79.0, 79.0), "reproduced", 2.0, 1.0),
        ((80.0, 80.0, 80.0), (80.0, 80.0, 80.0), "undecided", 0.0, 0.0),
        ((2.0, 4.0), (1.0, 1.0), "reproduced", 2.0, math.sqrt(2)),  # 1, 3: mean 2 above sd 1.41
        ((1.0, 4.0), (1.0, 1.0), "undecided", 1.5, 1.5 * math.sqrt(2)),
        ((80.0,), (10.0,), "undecided", 70.0, math.nan),
        ((50.0, 51.0), (math.nan, math.nan), "reproduced", 50.5, math.sqrt(0.5)),  # no agreement counts as 0
    ],
)
def test_verdicts(better, worse, answer, difference, spread):
    found = verdict(dict(enumerate(better)), dict(enumerate(worse)))
    assert found.answer == answer and found.seeds == len(better)
    assert found.difference == pytest.approx(difference, abs=1e-12)
    assert found.spread == pytest.approx(spread, abs=1e-12, nan_ok=True)


def test_a_verdict_pairs_the_seeds_that_both_have():
    found = verdict({0: 5.0, 1: 7.0, 2: 100.0}, {1: 6.0, 0: 4.0, 9: 0.0})
    assert (found.answer, found.difference, found.spread, found.seeds) == ("reproduced", 1.0, 0.0, 2)
    assert verdict({}, {0: 1.0}).answer == "undecided"


def made_up_rows():
    scores = {("p = 0", 3): (10.0, 8.0), ("p = 0", 4): (14.0, 12.0),
              ("p = 0.1", 3): (13.0, 7.0), ("p = 0.1", 4): (18.0, 11.0)}  # fmt: skip
    rest = {"best_step": 5, "alignment": 0.25, "uniformity": -1.5, "effective_rank": 20.0, "seconds": 2.0}
    return [{"arm": arm, "seed": seed, "score_best": best, "score_last": last, **rest}
            for (arm, seed), (best, last) in scores.items()]  # fmt: skip


def test_the_summary_of_given_rows(tmp_path):
    plan = plan_of(tmp_path)
    line = summary(plan, made_up_rows())[1]
    assert (line["arm"], line["seeds"], line["mean_best"], line["mean_last"]) == ("p = 0.1", 2, 15.5, 9.0)
    assert line["sd_best"] == pytest.approx(5 / math.sqrt(2)) and line["sd_last"] == pytest.approx(math.sqrt(8))
    assert (line["min_best"], line["max_best"], line["alignment"], line["seconds"]) == (13.0, 18.0, 0.25, 2.0)
    order = judged(plan, made_up_rows())[0]
    assert order["verdict_best"] == "reproduced" and order["difference_best"] == 3.5  # 3, 4
    assert order["verdict_last"] == "not reproduced" and order["difference_last"] == -1.0  # -1, -1
    text = as_text(plan, made_up_rows(), "points")
    assert (
        "p = 0.1 over p = 0 (paper 82.5 over 71.1, Table 3): reproduced (here +3.50 +- 0.71); "
        "at the last step not reproduced (-1.00 +- 0.00)"
    ) in text
    assert "15.50" in text and "13.00 to 18.00" in text


def test_a_seed_without_a_score_is_left_out_of_the_mean(tmp_path):
    rows = made_up_rows()
    rows[3]["score_best"] = math.nan
    line = summary(plan_of(tmp_path), rows)[1]
    assert (line["mean_best"], line["max_best"], line["seeds"]) == (13.0, 13.0, 2) and math.isnan(line["sd_best"])


# --- whole studies


def test_a_study_is_the_runs_that_train_makes(text, tmp_path):
    said = []
    result = run_study(plan_of(tmp_path), text, out=tmp_path / "s", say=said.append)
    assert result.finished and len(said) == 5 and said[1].startswith("1 of 4: p = 0, seed 3: ")
    rows = table(tmp_path / "s" / "mine.csv")
    assert [(row["arm"], row["seed"]) for row in rows] == [
        ("p = 0", "3"), ("p = 0", "4"), ("p = 0.1", "3"), ("p = 0.1", "4")
    ]  # fmt: skip
    for row, dropout in zip(rows, (0.0, 0.0, 0.1, 0.1), strict=True):
        options = TINY | {"steps": 6, "dropout": dropout, "seed": int(row["seed"])}
        report = train(text, out=tmp_path / "hand", overwrite=True, **options).report
        assert float(row["score_best"]) == report["after"]["recall_at_1"]
        assert float(row["score_last"]) == report["last"]["recall_at_1"]
        assert int(row["best_step"]) == report["best_step"]
        for name in ("alignment", "uniformity", "effective_rank"):
            assert float(row[name]) == round(report["after"][name], 6)
    assert {row["uniformity"] for row in rows[:2]}.isdisjoint(row["uniformity"] for row in rows[2:])
    assert len(table(tmp_path / "s" / "mine_summary.csv")) == 2
    assert table(tmp_path / "s" / "mine_orderings.csv")[0]["paper_better"] == "82.5"
    assert (tmp_path / "s" / "mine.png").read_bytes().startswith(b"\x89PNG")
    kept = {file.name for file in (tmp_path / "s" / "runs" / "mine" / "p-=-0-seed3").iterdir()}
    assert kept == {"metrics.jsonl", "progress.json", "result.json", "training.json"}


def test_an_interrupted_study_goes_on_and_ends_in_the_same_table(text, tmp_path, monkeypatch):
    plan = plan_of(tmp_path)
    run_study(plan, text, out=tmp_path / "whole")

    def stop(line):
        if line.startswith("1 of 4"):
            raise KeyboardInterrupt

    result = run_study(plan, text, out=tmp_path / "parts", say=stop)
    assert not result.finished and len(result.rows) == 1
    assert len(table(tmp_path / "parts" / "mine.csv")) == 1  # what is done can be seen

    one_step, steps = loop.Training.one_step, []

    def ctrl_c_in_the_third(self, workers):
        line = one_step(self, workers)
        steps.append(self.done)
        if len(steps) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return line

    monkeypatch.setattr(loop.Training, "one_step", ctrl_c_in_the_third)
    result = run_study(plan, text, out=tmp_path / "parts")
    assert not result.finished and len(result.rows) == 1 and steps == [1, 2, 3]
    assert run_study(plan, text, out=tmp_path / "parts").finished
    assert steps == [1, 2, 3, 4, 5, 6, *[1, 2, 3, 4, 5, 6] * 2]  # no step is taken twice
    assert without_seconds(tmp_path / "parts" / "mine.csv") == without_seconds(tmp_path / "whole" / "mine.csv")
    again = run_study(plan, text, out=tmp_path / "parts")
    assert again.finished and len(steps) == 18 and len(again.rows) == 4
    for name in ("mine.csv", "mine_summary.csv"):
        fields = [{k: v for k, v in row.items() if k != "seconds"} for row in table(tmp_path / "whole" / name)]
        assert fields == without_seconds(tmp_path / "parts" / name)


def test_another_plan_is_refused_before_any_work(text, dev, tmp_path, monkeypatch):
    run_study(plan_of(tmp_path), text, out=tmp_path / "s")
    monkeypatch.setattr(loop.Training, "one_step", None)
    for content, words in (
        (PLAN.replace("steps = 6", "steps = 7"), r"steps is 7, but the run .* was started with 6"),
        (PLAN.replace("threads = 1", "threads = 1\nlr = 0.1"), r"lr is 0.1, but the run .* was started with None"),
        (PLAN.replace("dropout = 0.0", "dropout = 0.2"), r"dropout is 0.2, but the run .*p-=-0-seed3 .* with 0.0"),
    ):
        with pytest.raises(InputError, match=words):
            run_study(plan_of(tmp_path, content), text, out=tmp_path / "s")
    with pytest.raises(InputError, match=r"the dev is not what the run .* was started on"):
        run_study(plan_of(tmp_path), text, dev=dev, out=tmp_path / "s")
    write_sentences(text, 100)
    with pytest.raises(InputError, match=r"the text is not what the run .* was started on"):
        run_study(plan_of(tmp_path), text, out=tmp_path / "s")


def test_fewer_arms_and_more_seeds_use_what_is_there(text, tmp_path):
    run_study(plan_of(tmp_path, arms=["p = 0"]), text, out=tmp_path / "s", keep_models=True)
    first = tmp_path / "s" / "runs" / "mine" / "p-=-0-seed3"
    assert (first / "model.safetensors").exists()
    before = (first / "result.json").read_bytes()
    result = run_study(plan_of(tmp_path, seeds=[4, 3, 5]), text, out=tmp_path / "s")
    assert len(result.rows) == 6 and (first / "result.json").read_bytes() == before
    assert [row["seed"] for row in result.rows] == [4, 3, 5] * 2


def test_studies_in_one_folder_share_equal_runs(text, tmp_path):
    run_study(plan_of(tmp_path, seeds=[3]), text, out=tmp_path / "s")
    said, content = [], PLAN.replace("p = 0.1", "as usual").replace("p = 0\"", "none\"").replace("dropout = 0.1\n", "")
    content = content.replace('dropout = 0.0', 'dropout = 0.0\nmasks = "off"')
    plan = load_plan("other", write(tmp_path / "other.toml", content), seeds=[3])
    rows = run_study(plan, text, out=tmp_path / "s", say=said.append).rows
    assert "1 runs done" in said[0] and [row["arm"] for row in rows] == ["none", "as usual"]
    mine, other = (table(tmp_path / "s" / f"{name}.csv") for name in ("mine", "other"))
    assert other[1] == {**mine[1], "arm": "as usual"}  # 0.1 is the default
    record = json.loads((tmp_path / "s" / "runs" / "other" / "as-usual-seed3.json").read_text())
    assert record["same_as"] == "mine/p-=-0.1-seed3"
    assert (tmp_path / "s" / "runs" / "other" / "none-seed3" / "metrics.jsonl").exists()  # was trained: masks differ
    assert run_study(plan, text, out=tmp_path / "s").rows == rows
    write(tmp_path / "s" / "runs" / "mine" / "foreign-seed4.json", '{"row": 1}')
    with pytest.raises(CheckpointError, match=r"foreign-seed4.json does not describe a run of a study"):
        run_study(replace(plan, seeds=(4,)), text, out=tmp_path / "s")


def test_the_dev_file_gives_the_score(text, dev, tmp_path):
    plan = plan_of(tmp_path, arms=["p = 0.1"], seeds=[3])
    row = run_study(plan, text, dev=dev, out=tmp_path / "s").rows[0]
    result = train(text, dev=dev, out=tmp_path / "hand", **TINY | {"steps": 6, "dropout": 0.1, "seed": 3})
    assert row["score_best"] == result.report["after"]["dev_spearman"]
    assert row["score_last"] == result.report["last"]["dev_spearman"]
    alike = [row for row in RATED if row[2] > 4]
    x, y = (result.encoder.encode([row[side] for row in alike], normalize_embeddings=True) for side in (0, 1))
    assert row["alignment"] == pytest.approx(((x - y) ** 2).sum(axis=1).mean(), rel=1e-4)


HARD = """
title = "Hard"
varies = "columns"
seeds = [0]
[[arms]]
name = "all"
[[arms]]
name = "none"
columns = ["anchor", "positive"]
[[arms]]
name = "first"
columns = ["anchor", "negative", "positive"]
[train]
"""
HARD += "".join(f"{name} = {value}\n" for name, value in TINY.items())


@pytest.mark.parametrize("topic", TOPICS)
def test_every_shipped_study_runs(topic, triples, dev, tmp_path):
    """All arms of the shipped files, in a shape of no account: what the plan accepts, training accepts."""
    init = None
    if topic == "whitening":
        init = train(triples, positives="dropout", out=tmp_path / "model", **TINY | {"max_length": 32}).path
    plan = load_plan(topic, seeds=[0], steps=2)
    shape = SHAPE | {"layers": 2} if init is None else {"init": str(init), "max_length": 24}
    arms = tuple(replace(arm, options=shape | {"batch": 8, "threads": 1} | arm.options) for arm in plan.arms)
    result = run_study(replace(plan, arms=arms), triples, dev=dev, out=tmp_path / "s")
    assert result.finished and [row["arm"] for row in result.rows] == [arm.name for arm in plan.arms]
    assert all(-100 <= row["score_last"] <= 100 for row in result.rows)
    assert len({(row["score_last"], row["uniformity"]) for row in result.rows}) == len(plan.arms)


def test_columns_are_another_file(triples, dev, tmp_path):
    """Each arm equals training on a file with those columns, written by hand."""
    result = run_study(plan_of(tmp_path, HARD), triples, dev=dev, out=tmp_path / "s", keep_models=True)
    rows = [line.split("\t") for line in triples.read_text(encoding="utf-8").splitlines()]
    models = []
    for name, places in (("all", (0, 1, 2)), ("none", (0, 1)), ("first", (0, 2, 1))):
        lines = ["\t".join(row[place] for place in places) for row in rows]
        file = write(tmp_path / f"{name}.tsv", "\n".join(lines) + "\n")
        hand = train(file, dev=dev, out=tmp_path / name, **TINY)
        models.append((hand.path / "last.safetensors").read_bytes())
        assert models[-1] == (tmp_path / "s" / "runs" / "mine" / f"{name}-seed0" / "last.safetensors").read_bytes()
        score = next(row["score_last"] for row in result.rows if row["arm"] == name)
        assert score == hand.report["last"]["dev_spearman"]
    assert len(set(models)) == 3


READ = """
title = "Repairs"
varies = "what is done to the embeddings"
needs = ["init"]
seeds = [0]
[train]
steps = 0
max_length = 24
threads = 1
[[arms]]
name = "raw"
[[arms]]
name = "centred"
transform = "centre"
[[arms]]
name = "whitened"
transform = "whiten"
[[arms]]
name = "trained"
steps = 3
batch = 8
"""


def test_models_that_are_only_read(text, dev, tmp_path):
    """Raw, centred and whitened: scores and geometry computed by hand from the embeddings."""
    model = train(text, out=tmp_path / "model", **TINY).path
    plan = plan_of(tmp_path, READ, init=str(model))
    result = run_study(plan, text, dev=dev, out=tmp_path / "s")
    rows = {row["arm"]: row for row in result.rows}
    encoder = SentenceEncoder.load(model)
    x = encoder.encode(gather(None, [text]).texts).astype(np.float64)
    mean, deviations = x.mean(axis=0), x - x.mean(axis=0)
    values, vectors = np.linalg.eigh(deviations.T @ deviations / len(x))
    values, vectors = values[1:], vectors[:, 1:]  # layer norm leaves no variance along its mean
    maps = {"raw": lambda z: z, "centred": lambda z: z - mean,
            "whitened": lambda z: (z - mean) @ vectors / np.sqrt(values)}  # fmt: skip
    rated = [row[0] for row in RATED]  # every second sentence is one of them; encoded in the order of the study
    embeddings = encoder.encode(rated).astype(np.float64)  # whitening makes much of the rounding of another order
    sides = [embeddings[[rated.index(row[side]) for row in RATED]] for side in (0, 1)]
    for name, repaired in maps.items():
        left, right = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in map(repaired, sides))
        gold = [row[2] for row in RATED]
        assert rows[name]["score_best"] == rows[name]["score_last"]
        assert rows[name]["score_best"] == pytest.approx(100 * spearman((left * right).sum(axis=1), gold), abs=1e-3)
        alike = np.array(gold) > 4
        expected = ((left - right)[alike] ** 2).sum(axis=1).mean()
        assert rows[name]["alignment"] == pytest.approx(expected, rel=1e-3)
        assert rows[name]["best_step"] == 0 and not (tmp_path / "s" / "runs" / "mine" / f"{name}-seed0").exists()
    assert rows["whitened"]["effective_rank"] > rows["centred"]["effective_rank"] > rows["raw"]["effective_rank"]
    assert rows["trained"]["uniformity"] != rows["raw"]["uniformity"]
    assert (tmp_path / "s" / "runs" / "mine" / "trained-seed0" / "result.json").exists()


def test_a_run_whose_loss_is_not_finite_has_no_score(text, tmp_path, monkeypatch):
    one_step = loop.contrastive_step

    def poisoned(encoder, step, objective, masks, gradients, workers):
        loss, z = one_step(encoder, step, objective, masks, gradients, workers)
        return (loss * float("nan") if masks.rate == 0 else loss), z

    monkeypatch.setattr(loop, "contrastive_step", poisoned)
    plan = plan_of(tmp_path, PLAN.replace("steps = 6", 'steps = 6\nword_vectors = "random"'))
    for _ in range(2):  # the second time read from the record
        result = run_study(plan, text, out=tmp_path / "s")
        assert [math.isnan(row["score_best"]) for row in result.rows] == [True, True, False, False]
        assert table(tmp_path / "s" / "mine.csv")[0]["score_best"] == ""
    assert result.orderings[0]["verdict_last"] == "reproduced"


@pytest.mark.parametrize(
    ("topic", "given", "words"),
    [
        ("hard-negatives", {"files": "triples"}, "study hard-negatives needs an STS file .* give --dev FILE"),
        ("hard-negatives", {"dev": "dev"}, "needs a file of triples .* but no FILE is given"),
        ("hard-negatives", {"files": "text", "dev": "dev"}, "needs a file of triples .* but .*txt holds sentences"),
        ("positives", {"files": "text"}, "arm 'pairs' trains on pairs, .*; give a file of pairs, or --arms dropout,"),
        ("whitening", {"files": "text"}, "study whitening needs a pretrained model .* give --init MODEL"),
        ("dropout", {"files": "missing"}, "missing.txt does not exist"),
    ],
)  # fmt: skip
def test_a_study_says_what_it_needs(topic, given, words, text, dev, triples, tmp_path):
    paths = {"text": text, "dev": dev, "triples": triples, "missing": tmp_path / "missing.txt"}
    files = [paths[given["files"]]] if "files" in given else []
    with pytest.raises(InputError, match=words):
        run_study(load_plan(topic), files, dev=paths.get(given.get("dev")), out=tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_the_command(text, tmp_path, capsys, monkeypatch):
    config = write(tmp_path / "plan.toml", PLAN)
    command = ["study", "rates", str(text), "--config", str(config), "--out", str(tmp_path / "s"), "--seeds", "3,4"]
    assert main([*command, "--json"]) == 0
    out = capsys.readouterr().out
    assert "Dropout: 2 arms, 2 seeds, 0 runs done; varied: the rate" in out
    assert "p = 0.1 over p = 0 (paper 82.5 over 71.1" in out
    last = json.loads(out.splitlines()[-1])
    assert last["finished"] and len(last["rows"]) == 4 and last["orderings"][0]["table"] == "Table 3"
    one_step = loop.Training.one_step

    def ctrl_c(self, workers):
        os.kill(os.getpid(), signal.SIGINT)
        return one_step(self, workers)

    monkeypatch.setattr(loop.Training, "one_step", ctrl_c)
    assert main([*command[:-1], "3,4,5", "--arms", "p = 0"]) == 130
    out = capsys.readouterr().out.splitlines()[-1]
    assert out.startswith("stopped after 2 of 3 runs; go on with: nano-simcse study rates") and "--arms 'p = 0'" in out
    for arguments, words in (
        (["study", "dropuot"], "did you mean dropout?"),
        ([*command[:-1], "a"], "--seeds is 'a'; expected whole numbers with commas between them"),
    ):
        assert main(arguments) == 2
        assert words in capsys.readouterr().err
