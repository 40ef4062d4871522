"""The commands as a user types them: output, files, and one sentence with exit code 2 for what cannot be used."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from tiny import TINY, pairs, sentences, write_sentences

from nano_simcse import SentenceEncoder, commands
from nano_simcse.cli import COMMANDS, main, parse
from nano_simcse.data.docstrings import Corpus, Entry

OPTIONS = [word for name, value in TINY.items() for word in ("--" + name.replace("_", "-"), str(value))]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run folder made by the command line, and what it printed."""
    folder = tmp_path_factory.mktemp("cli")
    text = write_sentences(folder / "text.txt")
    done = run(["train", text, *OPTIONS, "--out", folder / "run", "--json"], folder)
    assert done.returncode == 0, done.stderr
    return folder / "run", done.stdout


def run(arguments, folder, warnings="error::RuntimeWarning"):
    """The command in a process of its own, in `folder`, with a cache of its own."""
    environment = os.environ | {"NANO_SIMCSE_CACHE": str(folder / "cache"), "PYTHONWARNINGS": warnings}
    command = [sys.executable, "-m", "nano_simcse", *map(str, arguments)]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )


def fails(capsys, *arguments):
    """Run in this process; the one sentence printed for exit code 2."""
    try:
        code = main([str(a) for a in arguments])
    except SystemExit as stop:  # argparse
        code = stop.code
    captured = capsys.readouterr()
    assert code == 2, captured
    assert captured.out == ""
    assert captured.err.count("\n") == 1, captured.err
    return captured.err


def test_train_prints_a_table_and_ends_in_one_json_object(trained):
    folder, output = trained
    assert "before" in output and "recall@1 (%)" in output
    report = json.loads(output.splitlines()[-1])
    assert report["positives"] == "dropout" and report["steps"] == 12
    assert report["out"] == str(folder)
    for state in ("before", "after"):
        assert list(report[state]) == [
            "recall_at_1", "alignment", "uniformity", "mean_pair_cosine", "effective_rank"
        ]  # fmt: skip
    expected = {"config.json", "tokenizer.json", "vocab.txt", "model.safetensors", "last.safetensors", "metrics.jsonl",
                "training.json", "progress.json", "result.json", "training.png"}  # fmt: skip
    assert {p.name for p in folder.iterdir()} == expected


def test_encode_writes_what_the_api_returns(trained, tmp_path, capsys):
    folder, _ = trained
    text = write_sentences(tmp_path / "in.txt", 9)
    assert main(["encode", str(text), "--model", str(folder), "--out", str(tmp_path / "x.npy")]) == 0
    x = np.load(tmp_path / "x.npy", allow_pickle=False)
    np.testing.assert_array_equal(x, SentenceEncoder.load(folder).encode(sentences(9)))
    assert "9 embeddings of 16 numbers" in capsys.readouterr().out


def test_encode_writes_through_a_link_to_a_file_of_another_name(trained, tmp_path):
    folder, _ = trained
    text = write_sentences(tmp_path / "t.txt", 9)
    (tmp_path / "x.npy").symlink_to(tmp_path / "data.bin")
    assert main(["encode", str(text), "--model", str(folder), "--out", str(tmp_path / "x.npy")]) == 0
    assert np.load(tmp_path / "data.bin").shape == (9, TINY["width"])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["data.bin", "t.txt", "x.npy"]


def test_encode_reads_standard_input(trained, tmp_path):
    folder, _ = trained
    command = [sys.executable, "-m", "nano_simcse", "encode", "-", "--model", folder, "--out", tmp_path / "x.npy"]
    done = subprocess.run(command, input=b"the cat\na dog\n", capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "x.npy", allow_pickle=False).shape == (2, 16)
    done = subprocess.run(command, input=b"caf\xe9", capture_output=True, check=False)
    assert done.returncode == 2 and b"byte 0xe9 at line 1, byte offset 3" in done.stderr


def test_evaluate_prints_every_protocol(trained, tmp_path, capsys):
    folder, _ = trained
    lines = [f"{'ab'[i % 2]}\t{a}\t{b}\t{i % 6}" for i, (a, b) in enumerate(pairs(24))]
    file = tmp_path / "sts.tsv"
    file.write_text("subset\tsentence1\tsentence2\tscore\n" + "\n".join(lines) + "\n", encoding="utf-8")
    assert main(["evaluate", str(file), "--model", str(folder), "--json"]) == 0
    output = capsys.readouterr().out
    (reading,) = json.loads(output.splitlines()[-1])["readings"]
    report = reading["sets"][str(file)]
    assert set(reading) == {"pooling", "sets"} and report["count"] == 24
    numbers = [f"{report[protocol]['spearman']:.2f}" for protocol in ("all", "mean", "wmean")]
    assert output.splitlines()[1].split() == ["n", "all", "mean", "wmean", "pearson"]
    assert output.splitlines()[2].split() == ["sts.tsv", "24", *numbers, f"{report['pearson']:.2f}"]


def test_search_in_a_file_finds_the_line_itself(trained, tmp_path, capsys):
    folder, _ = trained
    text = write_sentences(tmp_path / "corpus.txt", 60)
    for mode in ([], ["--dense"], ["--lexical"]):
        arguments = ["search", sentences(60)[41], "--model", folder, "--corpus", text, "-k", "3", "--json", *mode]
        assert main([str(a) for a in arguments]) == 0
        answers = json.loads(capsys.readouterr().out.splitlines()[-1])["answers"]
        assert len(answers) == 3 and answers[0]["text"] == sentences(60)[41], mode


def test_search_answers_with_functions(trained, tmp_path, capsys, monkeypatch):
    folder, _ = trained
    entries = [Entry("numpy.linalg.svd", "Singular value decomposition.", "Factor a matrix."),
               Entry("os.walk", "Directory tree generator.", "Visit every folder.")]  # fmt: skip
    corpus = Corpus(sentences=[], entries=entries, versions={})
    monkeypatch.setattr("nano_simcse.commands.searching.load_corpus", lambda: corpus)
    monkeypatch.setenv("NANO_SIMCSE_CACHE", str(tmp_path))
    assert main(["search", "decomposition of a matrix", "--model", str(folder)]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("  1") and first.endswith("numpy.linalg.svd")
    assert len(list(tmp_path.glob("embeddings-*.npy"))) == 2  # of the summaries, of the whole texts


def test_the_newest_run_is_the_default_model(trained, tmp_path, capsys, monkeypatch):
    folder, _ = trained
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "003-dropout").symlink_to(folder)
    (tmp_path / "runs" / "010-unfinished").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["info"]) == 0
    output = capsys.readouterr().out
    assert "runs/003-dropout" in output.replace("\\", "/") and "parameters" in output


def test_diagnose_says_in_words_what_the_numbers_mean(trained, tmp_path, capsys):
    folder, _ = trained
    assert main(["diagnose", str(write_sentences(tmp_path / "t.txt", 40)), "--model", str(folder), "--json"]) == 0
    output = capsys.readouterr().out
    report = json.loads(output.splitlines()[-1])
    assert report["rows"] == 40 and report["alignment"] is None
    assert "two random sentences have cosine" in report["verdict"] or "Collapsed" in report["verdict"]
    (tmp_path / "p.tsv").write_text("\n".join("\t".join(p) for p in pairs(20)), encoding="utf-8")
    assert main(["diagnose", str(tmp_path / "p.tsv"), "--model", str(folder)]) == 0
    assert "alignment" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["train", "encode", "evaluate", "probe", "search", "diagnose", "info"])
def test_every_command_has_help_with_an_example(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert f"example: nano-simcse {command}" in capsys.readouterr().out


def test_every_command_that_is_parsed_is_there():
    assert sorted(COMMANDS) == sorted(commands.__all__)


def test_config_file_and_command_line(tmp_path, capsys):
    text = write_sentences(tmp_path / "text.txt")
    lines = [f'{name} = {value}' for name, value in (TINY | {"steps": 2, "temperature": 0.1}).items()]
    (tmp_path / "c.toml").write_text("\n".join(lines), encoding="utf-8")
    out = tmp_path / "run"
    assert main(["train", str(text), "--config", str(tmp_path / "c.toml"), "--steps", "3", "--out", str(out)]) == 0
    config = json.loads((out / "training.json").read_text(encoding="utf-8"))["config"]
    assert (config["steps"], config["temperature"]) == (3, 0.1)
    (tmp_path / "c.json").write_text('{"temprature": 0.1}', encoding="utf-8")
    capsys.readouterr()
    assert "did you mean temperature" in fails(capsys, "train", text, "--config", tmp_path / "c.json")


def test_unusable_input_gets_one_sentence(trained, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder, _ = trained
    text = write_sentences(tmp_path / "text.txt")
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    (tmp_path / "latin.txt").write_bytes(b"fine\ncaf\xe9\n")
    (tmp_path / "columns.tsv").write_text("a\tb\nc\td\ne\n", encoding="utf-8")
    cases = [
        (["train", "missing.txt"], "missing.txt"),
        (["train", "empty.txt"], "empty.txt"),
        (["train", "latin.txt"], "line 2"),
        (["train", "columns.tsv"], "line 3"),
        (["train", text, "--batch", "1"], "batch is 1"),
        (["train", text, "--batch", "many"], "'many' is not a whole number"),
        (["train", text, "--batch", "4000"], "fewer than a batch of 4000"),
        (["train", text, "--temperature", "0"], "temperature is 0"),
        (["train", text, "--temperature", "nan"], "temperature is nan"),
        (["train", text, "--dropout", "1"], "dropout is 1"),
        (["train", text, "--width", "10", "--heads", "3"], "not divisible"),
        (["train", text, "--pooling", "max"], "--pooling 'max' is not one of"),
        (["train", text, "--positives", "pair"], "did you mean pairs"),
        (["train", text, "--out", "text.txt"], "is a file"),
        (["trian"], "did you mean train"),
        (["train", text, "--out", folder], "already holds a run"),
        (["train", text, "--device", "tpu"], "device 'tpu'"),
        (["train", "--resume"], "--out"),
        (["encode", text, "--out", "x.npy"], "there is no run"),
        (["encode", text, "--out", "x.txt", "--model", folder], "ends in .npy"),
        (["search", "x", "--model", "nowhere"], "'nowhere' does not exist"),
        (["search", " ", "--model", folder], "query is empty"),
        (["search", "x", "-k", "0", "--model", folder], "-k is 0"),
        (["search", "x", "--weight", "2", "--model", folder, "--corpus", text], "weight"),
        (["evaluate", text, "--model", folder], "text.txt"),
    ]
    for arguments, words in cases:
        message = fails(capsys, *arguments)
        assert words in message, (arguments, message)
    assert not (tmp_path / "runs").exists()


def test_a_full_disk_is_one_sentence(tmp_path, capsys, monkeypatch):
    text = write_sentences(tmp_path / "text.txt")

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device", "model.safetensors")

    monkeypatch.setattr("nano_simcse.checkpoint.save_file", full)
    assert main(["train", str(text), *OPTIONS, "--out", str(tmp_path / "run")]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "nano-simcse: cannot read or write 'model.safetensors': No space left on device"


def test_files_may_follow_the_options(capsys):
    for words in (["study", "wv", "--seeds", "0", "a.txt", "b.txt"], ["study", "wv", "a.txt", "b.txt", "--seeds", "0"]):
        arguments = parse(words)
        assert (arguments.topic, arguments.seeds, arguments.files) == ("wv", "0", ["a.txt", "b.txt"])
    assert parse(["train", "--steps", "5", "a.txt"]).files == ["a.txt"]
    assert "'--sedes' is not an argument of study; did you mean --seeds?" in fails(
        capsys, "study", "wv", "--out", "x", "a.txt", "--sedes", "0"
    )


def test_a_mistyped_option_gets_the_nearest_one(capsys):
    assert "'--stesp' is not an argument of train; did you mean --steps?" in fails(capsys, "train", "--stesp", "5")


def test_a_loss_that_is_not_finite_is_one_sentence(tmp_path):
    text = write_sentences(tmp_path / "text.txt")
    done = run(["train", text, *OPTIONS, "--lr", "1e18", "--out", tmp_path / "run"], tmp_path, warnings="")
    assert done.returncode == 2
    assert "gradient norm" in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_training_goes_on_when_nobody_reads_its_output(tmp_path):
    text = write_sentences(tmp_path / "text.txt")
    command = [sys.executable, "-m", "nano_simcse", "train", text, *OPTIONS, "--out", tmp_path / "run"]
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    reader.stdout.readline()
    reader.stdout.close()
    assert reader.wait() == 0, reader.stderr.read()
    reader.stderr.close()
    assert json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))["finished"]


def test_the_safetensors_word_for_a_full_disk_is_one_sentence(tmp_path, capsys, monkeypatch):
    from safetensors import SafetensorError

    def full(*args, **kwargs):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    text = write_sentences(tmp_path / "text.txt")
    monkeypatch.setattr("nano_simcse.checkpoint.save_file", full)
    assert main(["train", str(text), *OPTIONS, "--out", str(tmp_path / "run")]) == 2
    assert f"nano-simcse: {tmp_path / 'run' / 'last.safetensors'} could not be written" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_config_files_speak_like_the_command_line(tmp_path, capsys):
    text = write_sentences(tmp_path / "text.txt")
    (tmp_path / "c.toml").write_text("max-length = 30\n", encoding="utf-8")
    out = tmp_path / "run"
    assert main(["train", str(text), "--config", str(tmp_path / "c.toml"), *OPTIONS[:-4], "--out", str(out)]) == 0
    assert json.loads((out / "training.json").read_text(encoding="utf-8"))["config"]["max_length"] == 30
    capsys.readouterr()
    (tmp_path / "c.toml").write_text("out = 'x'\n", encoding="utf-8")
    assert "belongs on the command line" in fails(capsys, "train", text, "--config", tmp_path / "c.toml")
    (tmp_path / "c.yaml").write_text("steps: 3\n", encoding="utf-8")
    assert "must end in .toml or .json" in fails(capsys, "train", text, "--config", tmp_path / "c.yaml")


def test_a_best_step_that_nothing_was_reported_on_is_named_alone(tmp_path, capsys, monkeypatch):
    """With one held-out pair there is something to choose by, and nothing to report on."""
    scores = iter([10.0, 50.0, 40.0, 30.0])
    monkeypatch.setattr("nano_simcse.training.report.Judge.score", lambda judge, encoder: next(scores))
    text = write_sentences(tmp_path / "text.txt")
    assert main(["train", str(text), *OPTIONS, "--held-out", "1", "--out", str(tmp_path / "run")]) == 0
    assert "best checkpoint: step 5\n" in capsys.readouterr().out


def test_ctrl_c_while_the_command_is_imported_ends_it_in_silence(tmp_path):
    late = (
        "import sys\nimport nano_simcse.__main__ as command\n"
        "class Press:\n    def find_spec(self, name, *rest):\n"
        "        if name == 'nano_simcse.cli':\n            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Press())\nsys.exit(command.run())"
    )
    done = subprocess.run([sys.executable, "-c", late], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
