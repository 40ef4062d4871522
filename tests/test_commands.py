"""Commands on awkward files, folders and streams: what they answer, and the one sentence for what they refuse."""

import csv
import errno
import io
import json

import numpy as np
import pytest
from command_line import untrained_model
from tiny import sentences

from nano_simcse.cli import main
from nano_simcse.geometry import collapse_guard


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of an untrained encoder."""
    return untrained_model(tmp_path_factory.mktemp("commands") / "model")


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("NANO_SIMCSE_CACHE", str(tmp_path / "cache"))
    for home in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(home, str(tmp_path))
    monkeypatch.chdir(tmp_path)


def command(capsys, *arguments, code=0):
    """(standard output, standard error) of one command that ends in `code`."""
    assert main([str(a) for a in arguments]) == code, capsys.readouterr()
    return capsys.readouterr()


def refused(capsys, *arguments):
    """The one sentence printed for unusable input."""
    output, message = command(capsys, *arguments, code=2)
    assert output == "" and message.count("\n") == 1, message
    return message


def give_input(monkeypatch, data):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


def test_encode_writes_a_row_for_every_line_or_nothing(model, tmp_path, capsys, monkeypatch):
    text, out = tmp_path / "t.txt", tmp_path / "x.npy"
    text.write_bytes(b"the cat\n \na dog\n")
    assert "t.txt, line 2 is blank; encode writes one row a line" in refused(
        capsys, "encode", text, "--model", model, "--out", out
    )
    give_input(monkeypatch, b"\nthe cat\n")
    assert "standard input, line 1 is blank" in refused(capsys, "encode", "-", "--model", model, "--out", out)
    assert not out.exists()
    text.write_bytes(b"the cat\r\na dog\n\n  \n")
    command(capsys, "encode", text, "--model", model, "--out", out)
    assert np.load(out, allow_pickle=False).shape == (2, 16)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"fine\ncaf\xe9 x\n", "standard input is not UTF-8: byte 0xe9 at line 2, byte offset 8"),
        (b"\n \n", "standard input holds no sentence"),
        (b"", "standard input holds no sentence"),
    ],
)
def test_unusable_standard_input(model, capsys, monkeypatch, data, words):
    give_input(monkeypatch, data)
    assert words in refused(capsys, "encode", "-", "--model", model, "--out", "x.npy")


def test_a_tilde_is_the_home_folder(model, tmp_path, capsys):
    (tmp_path / "m").symlink_to(model)
    (tmp_path / "t.txt").write_text("the cat\n", encoding="utf-8")
    command(capsys, "encode", "~/t.txt", "--model", "~/m", "--out", "~/x.npy")
    assert np.load(tmp_path / "x.npy", allow_pickle=False).shape == (1, 16)
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    assert "empty.txt is empty" in refused(capsys, "train", "~/empty.txt")
    assert "fingerprint" in command(capsys, "info", "~/m").out


def test_a_write_that_fails_names_the_file_that_was_asked_for(model, tmp_path, capsys, monkeypatch):
    (tmp_path / "t.txt").write_text("the cat\n", encoding="utf-8")
    (tmp_path / "folder.npy").mkdir()
    arguments = ("encode", "t.txt", "--model", model, "--out")
    message = refused(capsys, *arguments, tmp_path / "folder.npy")
    assert str(tmp_path / "folder.npy") in message and ".writing" not in message

    def short(*args, **kwargs):
        raise OSError("19200 requested and 16352 written")

    monkeypatch.setattr("numpy.save", short)
    message = refused(capsys, *arguments, "x.npy")
    assert message == "nano-simcse: cannot write x.npy: the disk is full or the write was cut short\n"

    def forbidden(dir, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied", f"{dir}/.writing-abc-x.npy")

    monkeypatch.setattr("tempfile.mkstemp", forbidden)
    message = refused(capsys, *arguments, "x.npy")
    assert message == "nano-simcse: cannot read or write 'x.npy': Permission denied\n"


def test_where_nothing_can_be_written_nothing_is_computed(model, tmp_path, capsys, monkeypatch):
    def at_work(*arguments, **options):
        pytest.fail("the work began")

    (tmp_path / "t.txt").write_text("the cat\n", encoding="utf-8")
    monkeypatch.setattr("nano_simcse.SentenceEncoder.encode", at_work)
    message = refused(capsys, "encode", "t.txt", "--model", model, "--out", "t.txt/x.npy")
    assert message == "nano-simcse: 't.txt/x.npy' cannot be written (File exists); give another place\n"
    monkeypatch.setattr("nano_simcse.SentenceEncoder.load", at_work)
    assert "'t.txt' is in use; expected a new or empty folder" in refused(capsys, "export", model, "--to", "t.txt")


def test_search_counts_the_lines_of_the_file(model, tmp_path, capsys):
    (tmp_path / "c.txt").write_text("\nthe cat\n\n\na robot draws\n", encoding="utf-8")
    for mode in ([], ["--dense"], ["--lexical"]):
        output = command(capsys, "search", "a robot draws", "--model", model, "--corpus", "c.txt", *mode)
        assert output.out.splitlines()[0].endswith("line 5") and output.err == "", mode
    (tmp_path / "blank.txt").write_text("\n\n", encoding="utf-8")
    assert "blank.txt holds no text" in refused(capsys, "search", "x", "--model", model, "--corpus", "blank.txt")


@pytest.mark.parametrize(
    ("query", "mode", "words"),
    [
        ("zebra", ["--lexical"], "note: no word of the query occurs in the corpus"),
        ("zebra", [], "note: no word of the query occurs in the corpus"),
        ("!?", ["--lexical"], "note: the query holds no word to look up"),
        ("\u4e2d", ["--dense"], "note: the query holds no word that the model knows"),
    ],
)
def test_a_query_that_says_nothing_is_answered_with_a_note(model, tmp_path, capsys, query, mode, words):
    (tmp_path / "c.txt").write_text("the cat\na robot draws\n", encoding="utf-8")
    output = command(capsys, "search", query, "--model", model, "--corpus", "c.txt", *mode)
    assert words in output.err and output.err.count("\n") == 1
    if "--lexical" in mode:
        assert [line.split()[-1] for line in output.out.splitlines()[::2]] == ["1", "2"]  # line 1, line 2


@pytest.mark.parametrize("report", [{}, [], None, {"search": {}}, {"search": {"dense_weight": "x"}}, {"search": []}])
def test_a_result_that_is_no_report_is_left_out(model, tmp_path, capsys, report):
    run = tmp_path / "run"
    run.mkdir()
    for file in model.iterdir():
        (run / file.name).symlink_to(file)
    (tmp_path / "c.txt").write_text("the cat\na robot draws\n", encoding="utf-8")
    without = command(capsys, "search", "the cat", "--model", run, "--corpus", "c.txt").out
    (run / "result.json").write_text(json.dumps(report), encoding="utf-8")
    assert command(capsys, "search", "the cat", "--model", run, "--corpus", "c.txt").out == without
    assert "fingerprint" in command(capsys, "info", run, "--json").out


def test_search_weighs_as_the_run_chose(model, tmp_path, capsys):
    run = tmp_path / "run"
    run.mkdir()
    for file in model.iterdir():
        (run / file.name).symlink_to(file)
    (run / "result.json").write_text('{"search": {"dense_weight": 0.9}}', encoding="utf-8")
    (tmp_path / "c.txt").write_text("the cat\na robot draws\na dog paints\n", encoding="utf-8")
    arguments = ("search", "a dog", "--model", run, "--corpus", "c.txt")
    chosen = command(capsys, *arguments).out
    assert chosen == command(capsys, *arguments, "--weight", "0.9").out
    assert chosen != command(capsys, *arguments, "--weight", "0.5").out


def test_search_embeds_anew_where_the_cache_holds_another_shape(model, tmp_path, capsys):
    (tmp_path / "c.txt").write_text("the cat\na robot draws\na dog paints\n", encoding="utf-8")
    arguments = ("search", "a dog", "--model", model, "--corpus", "c.txt", "--dense")
    answer = command(capsys, *arguments).out
    (kept,) = (tmp_path / "cache").glob("embeddings-*.npy")
    embeddings = np.load(kept)
    np.save(kept, embeddings[:2])
    assert command(capsys, *arguments).out == answer
    np.testing.assert_array_equal(np.load(kept), embeddings)


def test_evaluate_tells_files_of_one_name_apart(model, tmp_path, capsys):
    rows = "".join(f"{text}\tthe cat\t{i % 6}\n" for i, text in enumerate(sentences(12)))
    for name in ("a/sts.tsv", "b/sts.tsv", "other.tsv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("sentence1\tsentence2\tscore\n" + rows, encoding="utf-8")
    output = command(capsys, "evaluate", "a/sts.tsv", "b/sts.tsv", "other.tsv", "--model", model).out
    labels = [line.split()[0] for line in output.splitlines()[2:5]]
    assert labels == ["a/sts.tsv", "b/sts.tsv", "other.tsv"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("one.tsv", "the cat\ta dog\n", "one.tsv holds 1 pair; a geometry needs at least 2"),
        ("one.tsv", "the cat\ta dog\ta robot\n", "one.tsv holds 1 triple;"),
        ("one.txt", "the cat\nthe cat\n", "one.txt holds 1 distinct sentence;"),
    ],
)
def test_diagnose_counts_what_the_file_holds(model, tmp_path, capsys, name, content, words):
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert words in refused(capsys, "diagnose", name, "--model", model)


def test_the_variance_of_equal_rows_is_not_negative():
    rows = np.tile(np.random.default_rng(3).standard_normal(48), (7, 1))
    lengths = np.linspace(0.5, 2, 7)[:, None]
    for x in (rows, rows * lengths, rows.astype(np.float32) * lengths):
        (reason,) = collapse_guard(x).reasons
        assert reason.startswith("all rows lie within one point: their variance is ")
        assert 0 <= float(reason.split()[-1]) < 1e-12


def test_reading_long_cells_leaves_the_limit_of_the_csv_module_alone(model, tmp_path, capsys):
    before = csv.field_size_limit()
    (tmp_path / "a.csv").write_text(f"{'cat ' * 40_000},dog\ncat,dog\n", encoding="utf-8")
    assert "alignment" in command(capsys, "diagnose", "a.csv", "--model", model).out
    assert csv.field_size_limit() == before
