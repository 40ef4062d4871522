"""The GPU benchmark without a GPU: it refuses, it rehearses, and its measuring parts run."""

import json
import sys

import pytest
from tiny import write_sentences

from benchmarks import equality, gpu
from benchmarks.workload import Size, made_up_step

SIZE = Size("tiny", 1, 16, 2, 4)


@pytest.fixture
def text(tmp_path):
    return str(write_sentences(tmp_path / "text.txt"))


def test_it_refuses_in_one_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert gpu.main(["--out", str(tmp_path / "gpu.json")]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1 and "needs CuPy" in captured.err
    assert not (tmp_path / "gpu.json").exists()


def test_a_rehearsal_reports_equalities_and_no_time(tmp_path, capsys, text, monkeypatch):
    monkeypatch.setattr(gpu, "ENCODED", 200)
    out = tmp_path / "gpu.json"
    assert gpu.main(["--dry-run", "--data", text, "--out", str(out)]) == 0
    results = json.loads(out.read_text(encoding="utf-8"))
    assert results["dry_run"] and results["equality"]["mask_bits_that_differ"] == 0
    assert results["steps"] == {"dry": {"uploads": results["steps"]["dry"]["uploads"]}}
    assert not {"ms", "seconds", "encoded_per_s"} & set(results["run"])
    shown = capsys.readouterr().out
    assert "stand-in for CuPy, no GPU" in shown and "| 1 x 16, batch 4 x 2 |  |  |  | " in shown


def test_the_measurement_runs_and_fills_the_table(meter, monkeypatch, text):
    monkeypatch.setattr(gpu, "SIZES", (Size("small", 1, 16, 2, 4),))
    monkeypatch.setattr(gpu, "STEPS", 2)
    monkeypatch.setattr(gpu, "ENCODED", 200)
    monkeypatch.setattr(gpu, "RUN_STEPS", (2, 2))
    monkeypatch.setattr(gpu, "torch_figures", lambda size, batches: {"eager_ms": 1.5, "compiled_ms": None})
    results = gpu.measure("cuda:0", [text], None)
    assert results["steps"]["small"]["ms"] > 0 and results["steps"]["small"]["steps"] == 2
    assert results["steps"]["small"]["uploads"] >= 7 and results["run"]["steps"] == 2
    shown = gpu.table({**results, "date": "2000-01-01"})
    assert "Measured 2000-01-01 on one stand-in" in shown and "| 1.5 |" in shown and "Encoding: " in shown


def test_an_error_in_a_gradient_fails_the_benchmark(meter, monkeypatch):
    passed = gpu.equality("cuda:0", [SIZE])
    assert passed["passed"] and passed["steps"]["tiny"]["worst_error"] < 1e-5
    monkeypatch.setattr(equality, "to_host", lambda x: x.get() * 1.001 if hasattr(x, "get") else x)
    failed = gpu.equality("cuda:0", [SIZE])
    assert not failed["passed"]
    assert failed["steps"]["tiny"]["worst_error"] == pytest.approx(1e-3, rel=0.01)


@pytest.mark.oracle
def test_pytorch_runs_the_same_step(monkeypatch):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install -e '.[oracle]')")

    def no_compiler(model):
        raise RuntimeError("no C++ compiler")

    monkeypatch.setattr(torch, "compile", no_compiler)
    for name in ("WARM_UP", "STEPS"):
        monkeypatch.setattr(gpu, name, 1)
    figures = gpu.torch_figures(SIZE, [made_up_step(SIZE.batch)], device="cpu")
    assert figures["eager_ms"] > 0 and figures["compiled_ms"] is None
    assert figures["compiled_ms_error"] == "RuntimeError: no C++ compiler"
