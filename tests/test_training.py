"""Training end to end on made-up text: what runs promise about bytes, stopping, resuming and measuring."""

import json
import math
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load_file
from tiny import TINY, pairs, sentences, translations, write_sentences

import nano_simcse
from nano_simcse import SentenceEncoder, TrainingConfig, train
from nano_simcse.errors import CheckpointError, InputError, NonFiniteLoss
from nano_simcse.training import loop
from nano_simcse.training.material import gather
from nano_simcse.training.report import Judge, Remembered
from nano_simcse.training.run_folder import RunFolder, claim_run, newest_run
from nano_simcse.training.runs import filled
from nano_simcse.training.samplers import Sampler, known_duplicates, random_window

FILES = ("model.safetensors", "last.safetensors", "metrics.jsonl", "config.json", "tokenizer.json", "vocab.txt")


def contents(folder):
    return {name: (folder / name).read_bytes() for name in FILES}


@pytest.fixture
def text(tmp_path):
    return write_sentences(tmp_path / "text.txt")


def write_pairs(path, rows):
    path.write_text("\n".join("\t".join(row) for row in rows) + "\n", encoding="utf-8")
    return path


def write_rated(path, rows):
    scored = [("sentence1", "sentence2", "score"), *((a, b, str(i % 6)) for i, (a, b) in enumerate(rows))]
    return write_pairs(path, scored)


@pytest.mark.parametrize("options", [{}, {"threads": 2}, {"positives": "crop", "mlm_weight": 0.1, "head": True}])
def test_two_runs_with_one_seed_write_the_same_bytes(text, tmp_path, options):
    train(text, out=tmp_path / "a", **TINY | options)
    train(text, out=tmp_path / "b", **TINY | options)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    train(text, out=tmp_path / "c", **TINY | options | {"seed": 1})
    assert contents(tmp_path / "a")["model.safetensors"] != contents(tmp_path / "c")["model.safetensors"]


@pytest.mark.parametrize("stop_at", [3, 5, 11])
def test_a_stopped_and_resumed_run_equals_the_uninterrupted_one(text, tmp_path, monkeypatch, stop_at):
    train(text, out=tmp_path / "whole", **TINY)
    ctrl_c_at(monkeypatch, stop_at)
    result = train(text, out=tmp_path / "parts", **TINY)
    assert not result.finished and result.report["steps"] == stop_at
    monkeypatch.undo()
    result = train(out=tmp_path / "parts", resume=True)
    assert result.finished and result.report["steps"] == TINY["steps"]
    assert contents(tmp_path / "whole") == contents(tmp_path / "parts")
    again = train(out=tmp_path / "parts", resume=True)
    assert again.finished and contents(tmp_path / "whole") == contents(tmp_path / "parts")


def test_a_killed_run_resumes_from_its_last_checkpoint(text, tmp_path, monkeypatch):
    train(text, out=tmp_path / "whole", **TINY)
    one_step = loop.Training.one_step

    def die(self, workers):
        if self.done == 8:
            raise MemoryError
        return one_step(self, workers)

    monkeypatch.setattr(loop.Training, "one_step", die)
    with pytest.raises(MemoryError):
        train(text, out=tmp_path / "parts", **TINY)
    monkeypatch.undo()
    assert train(out=tmp_path / "parts", resume=True).finished
    assert contents(tmp_path / "whole") == contents(tmp_path / "parts")


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it."""


SCORES = {0: 10.0, 5: 50.0, 10: 50.0, 12: 30.0}  # of the checkpoints of a run of TINY


@pytest.fixture
def scripted(monkeypatch):
    """Give every checkpoint the score that SCORES has for its step. Returns the judges that were asked, and the run."""
    state = SimpleNamespace(judges=[], training=None)
    consider = loop.Training.consider_best

    def remember(training):
        state.training = training
        consider(training)

    def score(judge, encoder):
        state.judges.append(judge)
        return SCORES[state.training.done]

    monkeypatch.setattr(loop.Training, "consider_best", remember)
    monkeypatch.setattr(Judge, "score", score)
    return state


def test_the_model_is_the_checkpoint_of_the_best_score_and_of_two_the_later(text, tmp_path, scripted, monkeypatch):
    kept, save = {}, loop.Training.save

    def keep(training):
        kept[training.done] = training.encoder.params.flat.copy()
        save(training)

    monkeypatch.setattr(loop.Training, "save", keep)
    result = train(text, out=tmp_path / "run", **TINY)
    assert result.report["best_step"] == 10
    np.testing.assert_array_equal(SentenceEncoder.load(tmp_path / "run").params.flat, kept[10])
    assert (kept[10] != kept[12]).any()
    material = gather(None, [text])
    assert result.report["after"] == Judge(material.test).measure(result.encoder) != result.report["last"]
    assert [judge.pairs for judge in scripted.judges] == [material.validation] * 4


def test_a_score_that_is_not_a_number_gives_way_to_one_that_is(text, tmp_path, scripted, monkeypatch):
    for step, score in {0: math.nan, 5: 0.0, 10: math.nan, 12: -1.0}.items():
        monkeypatch.setitem(SCORES, step, score)
    assert train(text, out=tmp_path / "run", **TINY).report["best_step"] == 5


@pytest.mark.parametrize("last_write", ["save_state", "save_parameters"])
def test_a_run_killed_between_the_writes_of_a_checkpoint_chooses_the_same_model(
    text, tmp_path, scripted, monkeypatch, last_write
):
    monkeypatch.setitem(SCORES, 10, 40.0)  # which makes step 5 the best
    train(text, out=tmp_path / "whole", **TINY)
    write = getattr(loop, last_write)

    def write_and_die(*arguments):
        write(*arguments)
        if scripted.training.done == 5:
            raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(loop, last_write, write_and_die)
        train(text, out=tmp_path / "parts", **TINY)
    assert train(out=tmp_path / "parts", resume=True).report["best_step"] == 5
    assert contents(tmp_path / "whole") == contents(tmp_path / "parts")


def ctrl_c_at(monkeypatch, step, times=1):
    """Press Ctrl-C when that step is done."""
    one_step = loop.Training.one_step

    def then_ctrl_c(training, workers):
        line = one_step(training, workers)
        if training.done == step:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
        return line

    monkeypatch.setattr(loop.Training, "one_step", then_ctrl_c)


def test_a_run_without_anything_to_choose_by_keeps_its_last_step(text, tmp_path, monkeypatch):
    ctrl_c_at(monkeypatch, 7)
    result = train(text, out=tmp_path / "run", held_out=0, **TINY)
    assert not result.finished and result.report["best_step"] == result.report["steps"] == 7
    state = load_file(tmp_path / "run" / "last.safetensors")["parameters"]
    np.testing.assert_array_equal(SentenceEncoder.load(tmp_path / "run").params.flat, state)


def test_a_second_ctrl_c_interrupts_at_once(text, tmp_path, monkeypatch):
    ctrl_c_at(monkeypatch, 7, times=2)
    with pytest.raises(KeyboardInterrupt):
        train(text, out=tmp_path / "run", **TINY)
    monkeypatch.undo()
    train(text, out=tmp_path / "whole", **TINY)
    assert train(out=tmp_path / "run", resume=True).finished
    assert contents(tmp_path / "whole") == contents(tmp_path / "run")


def test_ctrl_c_during_the_last_evaluation_loses_nothing(text, tmp_path, monkeypatch):
    consider = loop.Training.consider_best

    def pressed_meanwhile(training):
        if training.done == TINY["steps"]:
            os.kill(os.getpid(), signal.SIGINT)
        consider(training)

    monkeypatch.setattr(loop.Training, "consider_best", pressed_meanwhile)
    with pytest.raises(KeyboardInterrupt):  # so that nothing comes after this run
        train(text, out=tmp_path / "run", **TINY)
    monkeypatch.undo()
    train(text, out=tmp_path / "whole", **TINY)
    assert contents(tmp_path / "whole") == contents(tmp_path / "run")
    assert train(out=tmp_path / "run", resume=True).finished


def test_a_resumed_run_drops_the_lines_and_the_result_of_what_it_does_again(text, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "LOG_EVERY", 1)
    train(text, out=tmp_path / "whole", **TINY)
    with monkeypatch.context() as patched:
        ctrl_c_at(patched, 8, times=2)  # logged, but after the last checkpoint
        with pytest.raises(KeyboardInterrupt):
            train(text, out=tmp_path / "run", **TINY)
    (tmp_path / "run" / "result.json").write_text("of an earlier stop", encoding="utf-8")
    steps = [json.loads(line)["step"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert steps[-1] == 8
    restore = loop.Training.restore

    def restored(training):
        restore(training)
        assert not training.folder.result.exists()
        assert training.folder.read_metrics()[-1]["step"] == training.done == 5

    monkeypatch.setattr(loop.Training, "restore", restored)
    assert train(out=tmp_path / "run", resume=True).finished
    assert contents(tmp_path / "whole") == contents(tmp_path / "run")


def test_a_run_that_cannot_begin_leaves_the_one_it_was_to_replace(text, tmp_path, monkeypatch):
    out = tmp_path / "run"
    train(text, out=out, **TINY)
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    before = {file.name: file.read_bytes() for file in out.iterdir()}

    def full(path, *arguments):
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patched, pytest.raises(OSError, match=r"No space left on device: '.*/run/last\."):
        patched.setattr(loop, "save_state", full)
        train(text, out=out, overwrite=True, **TINY | {"seed": 1})
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    train(text, out=out, overwrite=True, **TINY | {"seed": 1, "steps": 1})
    assert (out / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert (out / "model.safetensors").read_bytes() != before["model.safetensors"]
    assert json.loads((out / "training.json").read_text(encoding="utf-8"))["config"]["seed"] == 1


def test_resume_knows_text_by_what_it_says_not_by_where_it_is(text, tmp_path):
    dev = write_rated(tmp_path / "dev.tsv", pairs(30))
    train(text, dev=dev, out=tmp_path / "run", **TINY)
    moved = tmp_path / "elsewhere.txt"
    text.rename(moved)
    assert train(moved, out=tmp_path / "run", resume=True, steps=None).finished
    assert train(out=tmp_path / "run", resume=True).finished  # which knows now where the text is
    rows = dev.read_text(encoding="utf-8").splitlines()
    dev.write_text("\n".join([*rows[:-1], rows[-1][:-1] + "0.5"]) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="was started with, or the dev file"):
        train(moved, out=tmp_path / "run", resume=True)


def test_the_picture_has_the_chance_of_as_many_candidates_as_a_row_has(text, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr("nano_simcse.training.runs.draw_training", lambda folder, candidates: seen.append(candidates))
    triples = [(a, p, f"not so {i}") for i, (a, p) in enumerate(pairs(120))]
    train(text, out=tmp_path / "a", **TINY)
    train(text, out=tmp_path / "b", queue=20, **TINY)
    train(write_pairs(tmp_path / "p.tsv", pairs(120)), out=tmp_path / "c", **TINY)
    train(write_pairs(tmp_path / "t.tsv", triples), out=tmp_path / "d", **TINY)
    assert seen == [8, 28, 8, 16]


def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_good_checkpoint(text, tmp_path, monkeypatch):
    one_step = loop.contrastive_step

    def poisoned(encoder, step, objective, masks, gradients, workers):
        loss, z = one_step(encoder, step, objective, masks, gradients, workers)
        return (loss * np.float32("nan") if masks.step == 7 else loss), z

    monkeypatch.setattr(loop, "contrastive_step", poisoned)
    with pytest.raises(NonFiniteLoss, match=r"the loss is nan .* at step 8"):
        train(text, out=tmp_path / "run", **TINY)
    assert np.isfinite(SentenceEncoder.load(tmp_path / "run").params.flat).all()
    progress = json.loads((tmp_path / "run" / "progress.json").read_text(encoding="utf-8"))
    assert progress["steps"] == TINY["steps"]


def test_the_logged_rates_are_those_of_the_schedule(text, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "LOG_EVERY", 1)
    for schedule in ("constant", "cosine"):
        out = train(text, out=tmp_path / schedule, **TINY, schedule=schedule, warmup=0.25, lr=0.01).path
        rates = [line["lr"] for line in RunFolder(out).read_metrics() if "lr" in line]
        rising, falling = [0.01 / 3, 0.02 / 3, 0.01], [0.005 * (1 + math.cos(math.pi * k / 9)) for k in range(9)]
        assert rates == pytest.approx(rising + (falling if schedule == "cosine" else [0.01] * 9), rel=1e-12)


def test_training_learns_pairs_it_has_not_seen(tmp_path):
    """Translations without a common word: recall@1 on held-out pairs starts near chance and must rise far above."""
    file = write_pairs(tmp_path / "pairs.tsv", translations(288))
    options = TINY | {"width": 32, "batch": 16, "steps": 80, "lr": 5e-3, "vocab": 300, "eval_every": 80}
    report = train(file, out=tmp_path / "run", **options).report
    assert report["positives"] == "pairs"
    assert report["held_out"] == 28
    assert report["after"]["recall_at_1"] >= report["before"]["recall_at_1"] + 30
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    assert losses[0] > 0.5 * math.log(16) and losses[-1] < 0.5 * losses[0]


def test_held_out_text_is_not_trained_on(tmp_path, text):
    for file, kind in ((text, "sentences"), (write_pairs(tmp_path / "p.tsv", pairs()), "pairs")):
        material = gather(None, [file])
        held = {side for pair in (*material.test, *material.validation) for side in pair}
        if kind == "sentences":
            held |= {" ".join(pair) for pair in (*material.test, *material.validation)}
        assert len(material.test) == 24 and len(material.validation) == 8
        assert not held & set(material.texts)
        assert material.positives == ("dropout" if kind == "sentences" else "pairs")


def test_held_out_sets_the_number_of_pairs_to_measure_with(tmp_path, text):
    rows = pairs(120)
    file = write_pairs(tmp_path / "p.tsv", rows)
    for most, test, validation in ((1300, 12, 4), (13, 10, 3), (1, 0, 1), (0, 0, 0)):
        material = gather(None, [file], held_out=most)
        assert (len(material.test), len(material.validation)) == (test, validation)
        assert len(material.examples) == len(rows) - test - validation
    report = train(file, dev=write_rated(tmp_path / "dev.tsv", rows), out=tmp_path / "run", held_out=0, **TINY).report
    assert list(report["after"]) == ["dev_spearman"] and report["search"] == {} and report["held_out"] == 0
    report = train(text, out=tmp_path / "blind", held_out=0, **TINY).report  # nothing to measure with at all
    assert report["after"] == {} and report["best_step"] == report["steps"] == TINY["steps"]
    with pytest.raises(InputError, match=r"held_out is -1; expected at least 0"):
        train(file, out=tmp_path / "no", held_out=-1, **TINY)
    for held_out in (0, 1):
        with pytest.raises(InputError, match=f"but held_out is {held_out}; expected at least 2"):
            nano_simcse.compare(file, out=tmp_path / "no", held_out=held_out, **TINY)
    assert not (tmp_path / "no").exists()


def test_all_of_the_docstrings_can_be_trained_on(default_corpus):
    assert gather("dropout", held_out=0).texts == list(dict.fromkeys(default_corpus.sentences))
    assert len(gather("pairs", held_out=13).test) == 10


def test_triples_train_against_their_hard_negatives(tmp_path):
    rows = [(a, p, "nothing of this is true at all") for a, p in pairs(120)]
    rows = [(a, p, f"{n} {i}") for i, (a, p, n) in enumerate(rows)]
    result = train(write_pairs(tmp_path / "t.tsv", rows), out=tmp_path / "run", **TINY, log_weight=1.0)
    assert result.finished and result.report["steps"] == TINY["steps"]
    plain = train(write_pairs(tmp_path / "t.tsv", rows), out=tmp_path / "plain", **TINY)
    assert (result.path / "last.safetensors").read_bytes() != (plain.path / "last.safetensors").read_bytes()


def test_the_three_mask_modes_give_three_different_runs(text, tmp_path):
    losses = {}
    for masks in ("independent", "shared", "off"):
        result = train(text, out=tmp_path / masks, **TINY | {"masks": masks, "steps": 1})
        line = json.loads((result.path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[1])
        losses[masks] = line
    assert losses["shared"]["alignment"] < 1e-9 and losses["off"]["alignment"] < 1e-9  # identical views
    assert losses["independent"]["alignment"] > 1e-3
    assert losses["shared"]["loss"] != losses["off"]["loss"]


def test_a_dev_file_chooses_the_checkpoint(text, tmp_path):
    dev = tmp_path / "dev.tsv"
    lines = [f"{a}\t{b}\t{5 - i % 6}" for i, (a, b) in enumerate(pairs(30))]
    dev.write_text("sentence1\tsentence2\tscore\n" + "\n".join(lines) + "\n", encoding="utf-8")
    result = train(text, dev=dev, out=tmp_path / "run", **TINY)
    scores = [json.loads(line) for line in (result.path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    scores = {line["step"]: line["score"] for line in scores if "score" in line}
    assert sorted(scores) == [0, 5, 10, 12]
    assert result.report["best_step"] == max(step for step in scores if scores[step] == max(scores.values()))
    assert result.report["after"]["dev_spearman"] == pytest.approx(max(scores.values()), abs=1e-9)
    assert result.report["last"]["dev_spearman"] == pytest.approx(scores[12], abs=1e-9)


def test_resume_refuses_what_would_change_the_run(text, tmp_path):
    train(text, out=tmp_path / "run", **TINY)
    with pytest.raises(InputError, match=r"temperature is 0\.3, but the run in .* was started with 0\.1"):
        train(out=tmp_path / "run", resume=True, temperature=0.3)
    text.write_text("\n".join(sentences(200)) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="training text is not the one"):
        train(out=tmp_path / "run", resume=True)


def test_an_output_folder_is_never_overwritten_unasked(text, tmp_path):
    out = tmp_path / "run"
    first = train(text, out=out, **TINY)
    with pytest.raises(InputError, match="already holds a run"):
        train(text, out=out, **TINY)
    second = train(text, out=out, overwrite=True, **TINY | {"seed": 5})
    assert (first.encoder.params.flat != second.encoder.params.flat).any()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(InputError, match="not empty and holds no run"):
        train(text, out=tmp_path / "other", overwrite=True, **TINY)
    with pytest.raises(InputError, match="holds no run to resume"):
        train(out=tmp_path / "new", resume=True)


@pytest.mark.parametrize(
    ("given", "word_vectors", "lr", "temperature"),
    [
        ({}, "ppmi", 2e-3, 0.1),
        ({"word_vectors": "ppmi", "lr": 0.1}, "ppmi", 0.1, 0.1),
        ({"word_vectors": "random"}, "random", 2e-3, 0.1),
        ({"positives": "crop"}, "ppmi", 2e-3, 0.05),
        ({"init": "package:x"}, None, 3e-5, 0.05),
        ({"init": "package:x", "temperature": 0.2}, None, 3e-5, 0.2),
    ],
)
def test_options_that_are_not_given_follow_from_what_training_begins_with(text, given, word_vectors, lr, temperature):
    config = filled(TrainingConfig(**given), gather(given.get("positives"), [text]))
    assert (config.word_vectors, config.lr, config.temperature) == (word_vectors, lr, temperature)


def test_a_checkpoint_keeps_its_word_vectors(text, tmp_path):
    with pytest.raises(InputError, match="word_vectors is ppmi, but with init they are the checkpoint's"):
        train(text, init="package:x", word_vectors="ppmi", out=tmp_path / "run")
    with pytest.raises(InputError, match=r"word_vectors 'pmi' is not one of ppmi, random; did you mean ppmi"):
        train(text, word_vectors="pmi", out=tmp_path / "run")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no locks on folders")
@pytest.mark.parametrize("options", [{"overwrite": True, **TINY}, {"resume": True}])
def test_two_processes_do_not_train_in_one_folder(text, tmp_path, options):
    out = tmp_path / "run"
    train(text, out=out, **TINY)
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    holder = (
        "import sys\nfrom nano_simcse.training.run_folder import RunFolder\n"
        "with RunFolder(sys.argv[1]).held():\n    print('held', flush=True)\n    sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", holder, str(out)], stdin=PIPE, stdout=PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(InputError, match=r"another process is training in .*run'; wait for it or give another"):
            train(text, out=out, **options)
        assert {file.name: file.read_bytes() for file in out.iterdir()} == before
        other.kill()  # a killed process holds nothing
    assert train(text, out=out, **options).finished


def test_a_run_that_another_process_finished_meanwhile_is_not_overwritten(text, tmp_path, monkeypatch):
    held, out, other = RunFolder.held, tmp_path / "run", []

    def late(folder):
        if not other:
            other.append(None)
            other[0] = train(text, out=out, **TINY | {"seed": 3}).encoder.fingerprint()
        return held(folder)

    monkeypatch.setattr(RunFolder, "held", late)
    with pytest.raises(InputError, match="already holds a run"):
        train(text, out=out, **TINY)
    assert SentenceEncoder.load(out).fingerprint() == other[0]


def test_an_output_folder_that_is_a_link_to_nothing_is_refused(text, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"output folder .*link' is a link to nothing"):
        train(text, out=tmp_path / "link", **TINY)


def test_runs_are_numbered(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [train(text, **TINY).path.name for _ in range(2)]
    assert names == ["001-dropout", "002-dropout"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch": 1}, "batch is 1; expected at least 2"),
        ({"batch": 1000}, "fewer than a batch of 1000"),
        ({"temperature": 0}, "temperature is 0; expected a finite number above 0"),
        ({"temperature": math.inf}, "temperature is inf; expected"),
        ({"dropout": 1.0}, r"dropout is 1.0; expected a rate in \[0, 1\)"),
        ({"width": 10, "heads": 3}, "width 10 is not divisible by heads 3"),
        ({"pooling": "meen"}, "did you mean mean"),
        ({"positives": "pair"}, "did you mean pairs"),
        ({"positives": "pairs"}, "positives are pairs, but .* holds plain sentences"),
        ({"temprature": 1}, "did you mean temperature"),
        ({"steps": 1.5}, "steps is 1.5; expected a whole number"),
        ({"lr": "fast"}, "lr is 'fast', a str; expected"),
        ({"head": 1}, "head is 1; expected true or false"),
    ],
)
def test_bad_options_get_one_sentence_and_leave_nothing(text, tmp_path, options, words):
    with pytest.raises(InputError, match=words):
        train(text, out=tmp_path / "run", **TINY | options)
    assert not (tmp_path / "run" / "training.json").exists()


def test_every_example_once_an_epoch_and_steps_do_not_depend_on_history():
    rows = [np.array([2, i, 3]) for i in range(20)]
    sampler = Sampler(rows, np.arange(20)[:, None], "dropout", 5, seed=0)
    seen = [int(row[1]) for k in range(4) for row in sampler.step(k).rows[:5]]
    assert sorted(seen) == list(range(20))
    later = Sampler(rows, np.arange(20)[:, None], "dropout", 5, seed=0).step(7)
    sampler.step(2)
    np.testing.assert_array_equal(np.concatenate(later.rows), np.concatenate(sampler.step(7).rows))
    assert seen != [int(row[1]) for k in range(4, 8) for row in sampler.step(k).rows[:5]]


def test_windows_lie_inside_their_text():
    generator = np.random.default_rng(0)
    row = np.concatenate(([2], np.arange(10, 40), [3]))
    for _ in range(200):
        window = random_window(row, generator, (2, 3))
        assert window[0] == 2 and window[-1] == 3
        inner = window[1:-1]
        assert 6 <= len(inner) <= 24 and inner[0] >= 10 and inner[-1] < 40
        np.testing.assert_array_equal(np.diff(inner), 1)
    short = np.array([2, 10, 11, 3])
    assert random_window(short, generator, (2, 3)) is short


def test_known_duplicates_are_not_negatives():
    """Anchors 0 1 0, positives 5 6 7: text 0 has two positives, and neither is a negative of the other row."""
    exclude = known_duplicates(np.array([[0, 5], [1, 6], [0, 7]]))
    np.testing.assert_array_equal(exclude, [[0, 0, 1], [0, 0, 0], [1, 0, 0]])
    assert known_duplicates(np.array([[0, 5], [1, 6], [2, 7]])) is None
    same_positive = known_duplicates(np.array([[0, 5], [1, 5], [2, 7]]))
    np.testing.assert_array_equal(same_positive, [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    with_hard = known_duplicates(np.array([[0, 5, 8], [1, 6, 0], [2, 7, 9]]))
    np.testing.assert_array_equal(with_hard[0], [0, 0, 0, 0, 1, 0])  # the anchor itself as someone's hard negative


def test_config_from_python(text, tmp_path):
    result = nano_simcse.train(text, config=TrainingConfig(**TINY), out=tmp_path / "run", steps=2)
    assert result.report["steps"] == 2


def test_compare_trains_what_the_text_allows(text, tmp_path):
    said = []
    results, path = nano_simcse.compare(text, out=tmp_path / "all", say=said.append, **TINY)
    assert [r.report["positives"] for r in results] == ["dropout", "crop"]
    assert (path / "compare.png").stat().st_size > 10_000
    assert any("plain sentences" in line for line in said)


def test_a_stopped_comparison_goes_on_where_it_was(text, tmp_path, monkeypatch):
    whole, _ = nano_simcse.compare(text, out=tmp_path / "whole", **TINY)
    with monkeypatch.context() as patched:
        ctrl_c_at(patched, 7)
        results, _ = nano_simcse.compare(text, out=tmp_path / "parts", **TINY)
    assert [(r.report["positives"], r.report["steps"]) for r in results] == [("dropout", 7)]
    with pytest.raises(InputError, match=r"temperature is 0\.3, but the comparison in .*parts was started with None"):
        nano_simcse.compare(out=tmp_path / "parts", resume=True, temperature=0.3)
    for _ in range(2):  # the second time there is nothing left to do
        results, _ = nano_simcse.compare(out=tmp_path / "parts", resume=True)
        assert [r.report["positives"] for r in results] == ["dropout", "crop"]
        for done in whole:
            assert contents(done.path) == contents(tmp_path / "parts" / done.report["positives"])
    with pytest.raises(InputError, match=r"nowhere' holds no comparison to resume"):
        nano_simcse.compare(out=tmp_path / "nowhere", resume=True)


def test_a_comparison_that_replaces_another_does_not_take_its_runs_over(text, tmp_path, monkeypatch):
    nano_simcse.compare(text, out=tmp_path / "all", **TINY, temperature=0.3)
    with monkeypatch.context() as patched:
        ctrl_c_at(patched, 7)
        nano_simcse.compare(text, out=tmp_path / "all", overwrite=True, **TINY)
    results, _ = nano_simcse.compare(out=tmp_path / "all", resume=True)
    whole, _ = nano_simcse.compare(text, out=tmp_path / "whole", **TINY)
    assert [contents(r.path) for r in results] == [contents(r.path) for r in whole]


def test_a_comparison_on_rated_pairs_leaves_out_the_pairs(tmp_path):
    said, rated = [], write_rated(tmp_path / "rated.tsv", pairs(120))
    results, _ = nano_simcse.compare(rated, out=tmp_path / "all", say=said.append, **TINY)
    assert [r.report["positives"] for r in results] == ["dropout", "crop"]
    assert any("rated.tsv has scores" in line for line in said)


def test_parameters_that_are_not_finite_stop_before_they_are_measured(text, tmp_path, monkeypatch):
    one_step = loop.Training.one_step

    def poisoned(training, workers):
        line = one_step(training, workers)
        if training.done == 5:
            training.encoder.params.flat[3] = np.inf
        return line

    monkeypatch.setattr(loop.Training, "one_step", poisoned)
    with pytest.raises(NonFiniteLoss, match="the parameters are not finite after step 5"):
        train(text, out=tmp_path / "run", **TINY)
    assert SentenceEncoder.load(tmp_path / "run").params.flat[3] != np.inf


def test_the_folder_of_the_numbered_runs_is_no_run(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="'runs' is where the numbered runs go"):
        train(text, out="runs", **TINY)


@pytest.mark.parametrize("write", range(6))
def test_a_run_that_cannot_take_the_place_of_another_leaves_it(text, tmp_path, monkeypatch, write):
    """The renames fail one after another: what was there is there again."""
    out = tmp_path / "run"
    train(text, out=out, **TINY)
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    replace, count = os.replace, iter(range(1000))

    def failing(source, target):
        if (out in (Path(source).parent, Path(target).parent)) and ".writing-" in f"{source}{target}":
            exchanging = Path(source).parent != Path(target).parent
            if exchanging and next(count) == 3 * write:
                raise OSError(5, "Input/output error")
        replace(source, target)

    with monkeypatch.context() as patched, pytest.raises(OSError, match="Input/output"):
        patched.setattr("nano_simcse.files.os.replace", failing)
        train(text, out=out, overwrite=True, **TINY | {"seed": 1})
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before


def test_a_run_is_put_back_that_was_being_replaced_when_its_process_was_killed(text, tmp_path):
    out = tmp_path / "run"
    train(text, out=out, **TINY)
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    aside = out / ".writing-x" / "replaced"
    aside.mkdir(parents=True)
    for name in ("training.json", "model.safetensors", "config.json"):
        os.replace(out / name, aside / name)
    (out / "model.safetensors").write_text("of the new run", encoding="utf-8")
    with pytest.raises(InputError, match="already holds a run"):
        train(text, out=out, **TINY)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before


def test_rated_pairs_are_not_all_positives(tmp_path):
    rated = write_rated(tmp_path / "rated.tsv", pairs(120))
    for positives in ("pairs", None):
        with pytest.raises(InputError, match=r"rated\.tsv has scores, and as positives all its pairs"):
            train(rated, positives=positives, out=tmp_path / "run", **TINY)
    assert train(rated, positives="dropout", out=tmp_path / "run", **TINY).finished


def test_the_newest_run_is_the_one_begun_last_whatever_its_name(tmp_path):
    for age, name in enumerate(("mine", "002-dropout", "wiki", "001-compare/crop")):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        for file in ("model.safetensors", "training.json"):
            (folder / file).write_bytes(b"")
        os.utime(folder / "training.json", ns=(0, 10**9 * (10 - age)))
    for name in (".writing-run", "mine/.writing-run", "wiki/.writing-x"):  # being written just now
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(b"")
    (tmp_path / "mine" / "result.json").write_text('{"after": {"recall_at_1": null}}', encoding="utf-8")
    for name in ("mine", "002-dropout", "wiki", "001-compare/crop"):
        assert newest_run(tmp_path) == tmp_path / name
        (tmp_path / name / "model.safetensors").unlink()


def test_a_resumed_run_writes_its_description_again(text, tmp_path):
    train(text, out=tmp_path / "run", **TINY)
    before = (tmp_path / "run" / "config.json").read_bytes()
    (tmp_path / "run" / "config.json").write_text("{", encoding="utf-8")
    train(out=tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "config.json").read_bytes() == before


@pytest.mark.parametrize("damage", [b"\xff\xfe\n", b'"x"\n', b'{"loss": 1}\n', b"{\n"])
def test_a_damaged_log_is_told_in_one_sentence(text, tmp_path, damage):
    train(text, out=tmp_path / "run", **TINY)
    (tmp_path / "run" / "metrics.jsonl").write_bytes(damage)
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl is damaged"):
        train(out=tmp_path / "run", resume=True)


def test_a_place_where_no_folder_can_be_is_refused_before_any_work(text, monkeypatch):
    monkeypatch.setattr("nano_simcse.training.runs.gather", lambda *args: pytest.fail("this was work"))
    with pytest.raises(InputError, match=r"'.*text\.txt/x/y' cannot be made .* because '.*text\.txt' cannot"):
        train(text, out=text / "x" / "y", **TINY)


def test_a_dev_file_that_cannot_rank_is_named_before_any_work(text, tmp_path, monkeypatch):
    monkeypatch.setattr("nano_simcse.training.runs.gather", lambda *args: pytest.fail("this was work"))
    dev = write_pairs(tmp_path / "dev.tsv", [("sentence1", "sentence2", "score"), ("a b", "c d", "1")])
    with pytest.raises(InputError, match=r"dev\.tsv: all 1 gold scores are 1"):
        train(text, dev=dev, out=tmp_path / "run", **TINY)


def test_an_error_in_a_step_names_the_step(text, tmp_path):
    with pytest.raises(InputError, match=r"step \d+ of training: row \d+ is the zero vector"):
        train(text, out=tmp_path / "run", **TINY, dropout=0.99998, lr=1e-9)


def test_two_runs_never_get_the_same_folder(tmp_path):
    """Eight threads claim at once: eight numbers."""
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda i: claim_run(f"run{i}", tmp_path), range(8)))
    assert sorted(path.name[:3] for path in paths) == [f"{i:03d}" for i in range(1, 9)]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(path.name for path in paths)


def test_a_folder_left_by_a_killed_process_does_not_stop_the_numbering(tmp_path):
    (tmp_path / ".001").mkdir()
    assert claim_run("dropout", tmp_path).name == "001-dropout"


def test_a_comparison_that_cannot_run_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        nano_simcse.compare("nowhere.txt", **TINY)
    assert list((tmp_path / "runs").iterdir()) == []


def test_of_compared_runs_the_newest_is_the_one_that_finds_most(tmp_path):
    for name, recall in (("crop", 18.8), ("dropout", 14.6), ("pairs", 29.2)):
        folder = tmp_path / "003-compare" / name
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(b"")
        (folder / "result.json").write_text(json.dumps({"after": {"recall_at_1": recall}}), encoding="utf-8")
    assert newest_run(tmp_path).name == "pairs"


def test_a_start_that_fails_leaves_no_folder(text, tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nano_simcse.checkpoint.save_file", full)
    with pytest.raises(OSError, match="No space"):
        train(text, out=tmp_path / "run", **TINY)
    assert not (tmp_path / "run").exists()


def test_a_run_that_was_killed_while_it_began_can_be_started_again(text, tmp_path):
    (tmp_path / "run").mkdir()
    for name in ("config.json", "vocab.txt", "last.safetensors", ".writing-x-model.safetensors"):
        (tmp_path / "run" / name).write_text("half", encoding="utf-8")
    assert train(text, out=tmp_path / "run", **TINY).finished
    assert not list((tmp_path / "run").glob(".*"))


def test_resume_compares_options_given_by_name_even_with_the_default(text, tmp_path):
    train(text, out=tmp_path / "run", **TINY)
    with pytest.raises(InputError, match=r"batch is 64, but the run in .* was started with 8"):
        train(out=tmp_path / "run", resume=True, batch=64)
    rows = [("sentence1", "sentence2", "score"), ("a b", "c d", "1"), ("e", "f", "2")]
    dev = write_pairs(tmp_path / "dev.tsv", rows)
    with pytest.raises(InputError, match="was started with None"):
        train(out=tmp_path / "run", resume=True, dev=dev)


def test_text_of_which_nothing_is_left_gets_one_sentence(tmp_path):
    file = write_pairs(tmp_path / "p.tsv", [("a dog runs", "a dog moves")] * 100)
    with pytest.raises(InputError, match=r"0 different training examples besides the 13 set aside"):
        train(file, out=tmp_path / "run", **TINY)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: train(5), "files is 5"),
        (lambda: train(config={"steps": 3}), "config is a dict"),
        (lambda: nano_simcse.compare(stpes=3), "did you mean steps"),
        (lambda: nano_simcse.compare(positives="crop"), "leave out positives"),
        (lambda: train(steps="100"), "steps is '100', a str"),
        (lambda: train(seed=10**400), r"seed is beyond 2\^63"),
        (lambda: train(vocab=10**12), r"vocab is .*; expected 100 to 2\^24"),
        (lambda: train(clip=1e300), "clip is"),
        (lambda: train(device=0), "device is 0; expected cpu, cuda or cuda:i"),
        (lambda: train(resume=True, overwrite=True, out="x"), "expected one of them"),
    ],
)
def test_misuse_gets_one_sentence(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_numpy_integers_are_numbers():
    assert TrainingConfig(steps=np.int64(3)).steps == 3 and type(TrainingConfig(steps=np.int64(3)).steps) is int


def test_a_remembered_checkpoint_encodes_each_list_once():
    class Counting:
        device, calls = "cpu", 0

        def __init__(self, parameters):
            self.parameters = parameters

        def fingerprint(self):
            return f"made up {self.parameters}"

        def encode(self, texts, **options):
            self.calls += 1
            return np.array([[len(text), 1.0] for text in texts])

    counting = Counting(1)
    remembered = Remembered(counting)
    for texts in (["a", "bb"], ("a", "bb"), ["bb", "a"]):
        np.testing.assert_array_equal(remembered.encode(texts), [[len(text), 1.0] for text in texts])
    assert counting.calls == 2
    equal, other = Counting(1), Counting(2)
    assert Remembered(equal).encode(["a", "bb"]) is remembered.encode(["a", "bb"]) and equal.calls == 0
    Remembered(other).encode(["a", "bb"])
    assert other.calls == 1
    with pytest.raises(ValueError, match="read-only"):
        remembered.encode(["a", "bb"])[0] = 0


def test_a_run_encodes_the_dev_file_once_a_checkpoint(text, tmp_path, monkeypatch):
    encoded, encode = [], SentenceEncoder.encode
    monkeypatch.setattr(
        SentenceEncoder, "encode", lambda self, texts, *a, **b: (encoded.append(texts), encode(self, texts, *a, **b))[1]
    )
    dev = write_rated(tmp_path / "dev.tsv", pairs(30))
    train(text, dev=dev, out=tmp_path / "run", **TINY | {"steps": 8, "eval_every": 4, "seed": 1234})
    first = pairs(30)[0][0]
    assert sum(first in texts for texts in encoded) == 3  # before the first step, in the middle and at the end
