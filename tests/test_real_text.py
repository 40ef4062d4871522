"""The whole path on real text, where it lies beside the checkout."""

import json

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from shared_data import shared_path

from nano_simcse import SentenceEncoder
from nano_simcse.cli import main
from nano_simcse.data.readers import read_sts

SMALL = ["--layers", "1", "--width", "32", "--vocab", "2000", "--steps", "10", "--eval-every", "5"]


@pytest.mark.slow
def test_train_on_wikipedia_with_a_dev_file_runs_and_reports(tmp_path, capsys):
    text, dev = shared_path("data/sentences/wikipedia_80k.txt"), shared_path("data/sts/stsb-dev.tsv")
    run = tmp_path / "run"
    assert main(["train", str(text), "--dev", str(dev), *SMALL, "--out", str(run), "--json"]) == 0
    output = capsys.readouterr().out
    assert "wikipedia_80k.txt: 80,732 sentences" in output and "dev Spearman" in output
    report = json.loads(output.splitlines()[-1])
    encoder, pairs = SentenceEncoder.load(run), read_sts(dev)
    a, b = (encoder.encode([getattr(p, side) for p in pairs]).astype(float) for side in ("sentence1", "sentence2"))
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    gold = [p.score for p in pairs]
    assert report["after"]["dev_spearman"] == pytest.approx(100 * spearmanr(cosine, gold)[0], abs=1e-3)

    sts12 = shared_path("data/sts/sts12-test.tsv")
    assert main(["evaluate", str(dev), str(sts12), "--model", str(run), "--json"]) == 0
    reports = json.loads(capsys.readouterr().out.splitlines()[-1])["readings"][0]["sets"]
    assert reports[str(dev)]["pearson"] == pytest.approx(100 * pearsonr(cosine, gold)[0], abs=1e-3)
    assert "mean" not in reports[str(dev)]
    assert reports[str(sts12)]["count"] == 3108 and len(reports[str(sts12)]["subsets"]) == 5
