"""Eleven ways to break a SimCSE run, each a field of Setup, and the measurements that tell them apart.

`produce` trains the small encoder for a few steps with one fault in place, `measure` looks at the run from outside, as
somebody would who does not know the fault, and `diagnose` reads the measurements in the order of CHECKS.
"""

from dataclasses import dataclass

import numpy as np
from grammar import sentences, vocabulary
from small_encoder import PAD, TEMPERATURE, SmallEncoder, view_labels

from nano_simcse.data.batches import pack
from nano_simcse.encoder import encoder_forward
from nano_simcse.geometry import alignment, collapse_guard
from nano_simcse.layers import normalize, pool
from nano_simcse.losses import info_nce, masked_lm
from nano_simcse.masks import Masks
from nano_simcse.optim import Adam

BATCH = 16
TAGS = [f"tag{i}" for i in range(BATCH)]


@dataclass(frozen=True)
class Setup:
    """A run; every default is healthy.

    masks: masks of the two views ("independent", "shared", "off"); swapped: the rows 2i, 2i + 1 of a pass are split
    into halves; dot: raw dot products; temperature; lr; tags: row i of every batch starts with its own tag;
    repeats: each sentence this often in a batch; test_dropout: dropout still on in use; test_pooling: reading in use
    (training reads "mean"); pad_masked: whether attention ignores padding in use.
    """

    masks: str = "independent"
    swapped: bool = False
    dot: bool = False
    temperature: float = TEMPERATURE
    lr: float = 3e-3
    tags: bool = False
    repeats: int = 1
    test_dropout: bool = False
    test_pooling: str = "mean"
    pad_masked: bool = True


#: cause -> (what one sees, the broken setup)
FAULTS = {
    "learning rate far too high": ("loss stays at log N", Setup(lr=0.5)),
    "positives from the wrong rows": ("loss does not go below log N", Setup(swapped=True)),
    "dropout off in training": ("loss falls at once, nothing is learned", Setup(masks="off")),
    "one mask for both views": ("loss falls, alignment climbs", Setup(masks="shared")),
    "no normalisation": ("loss jumps, embeddings grow", Setup(dot=True)),
    "temperature too high": ("loss stays high, most rows are right", Setup(temperature=1.0)),
    "duplicates in a batch": ("loss stops at log of the copies", Setup(repeats=2)),
    "a shortcut in the batch": ("loss near 0, poor on clean text", Setup(tags=True)),
    "dropout on in use": ("two encodings of one text differ", Setup(test_dropout=True)),
    "another pooling in use": ("score far below training", Setup(test_pooling="cls_before_pooler")),
    "padding not masked": ("a text's vector depends on its batch", Setup(pad_masked=False)),
}


WHAT_TO_DO = {
    "learning rate far too high": "vectors of one batch: are they one point? lower the rate",
    "positives from the wrong rows": "with dropout off a positive must equal its anchor",
    "dropout off in training": "encode a batch twice in training: the results must differ",
    "one mask for both views": "the two views of one pass must differ",
    "no normalisation": "no score may exceed 1",
    "temperature too high": "right rows although the loss is high: divide by 0.05",
    "duplicates in a batch": "largest cosine between different rows must be below 1",
    "a shortcut in the batch": "change the surface, keep the text: who is nearest?",
    "dropout on in use": "encode a text twice in use: the results must be equal",
    "another pooling in use": "vectors in use and in training (dropout off) must be equal",
    "padding not masked": "a text alone and in a padded batch must be equal",
}


@dataclass(frozen=True)
class Run:
    """A trained encoder with its setup, the losses, and the encoder before training."""

    setup: Setup
    encoder: SmallEncoder
    losses: np.ndarray


TEXTS = sentences(600, seed=3)
CLEAN = sentences(660, seed=3)[600:]


def produce(setup, steps=30, seed=0):
    """Train under this setup."""
    encoder = SmallEncoder(vocabulary() + TAGS, seed=seed)
    adam, losses = Adam(encoder.params), []
    for step in range(steps):
        h, back = encoder.forward(*_batch(encoder, setup, step))
        queries, keys = _views(h, setup)
        loss, dqueries, dkeys = _loss(queries, keys, setup)
        dh = np.empty_like(h)
        dq, dk = _views(dh, setup)
        dq[...], dk[...] = dqueries, dkeys
        adam.step(back(dh), setup.lr)
        losses.append(float(loss))
    return Run(setup, encoder, np.array(losses))


def _batch(encoder, setup, step, masked=True):
    """(token rows, masks, labels): every sentence twice, copies adjacent."""
    rng = np.random.default_rng(step)
    texts = [TEXTS[i] for i in rng.choice(len(TEXTS), BATCH // setup.repeats, replace=False)] * setup.repeats
    if setup.tags:
        texts = [f"{tag} {tag} {tag} {text}" for tag, text in zip(TAGS, texts, strict=True)]
    rows = [row for row in encoder.rows(texts) for _ in range(2)]
    labels = view_labels(BATCH).reshape(2, BATCH).T.ravel()  # rows 2i and 2i + 1 are the views of sentence i
    mode = setup.masks if masked else "off"
    return rows, Masks(seed=0, step=step, rate=0.1, mode=mode), labels


def _views(h, setup):
    """The two views of a pass as arrays that share memory with it."""
    return (h[:BATCH], h[BATCH:]) if setup.swapped else (h[0::2], h[1::2])


def _loss(queries, keys, setup):
    if setup.dot:
        loss, back = masked_lm(queries @ keys.T / setup.temperature, np.arange(BATCH))
        g = back() / setup.temperature
        return loss, g @ keys, g.T @ queries
    loss, back = info_nce(queries, keys, setup.temperature)
    return loss, *back()


def in_use(run, texts, step=0, longest=0):
    """Vectors as the run's owner computes them at test time; longest: pad the rows to this many tokens."""
    setup, encoder = run.setup, run.encoder
    rows = encoder.rows(texts)
    if longest and not setup.pad_masked:
        rows = [np.append(row, np.full(longest - len(row), PAD, row.dtype)) for row in rows]
    batch = pack(rows, multiple=longest if longest and setup.pad_masked else 1)
    masks = Masks(seed=1, step=step, rate=0.1) if setup.test_dropout else None
    hidden, _ = encoder_forward(encoder.params, encoder.config, batch, masks, grad=False)
    return pool(hidden, batch, setup.test_pooling)[0]


def measure(run, step=10_000):
    """What can be seen of a run: one more batch with dropout and without, clean text, and the vectors in use."""
    setup, encoder = run.setup, run.encoder
    on, off, later = (
        encoder.forward(*_batch(encoder, setup, step)),
        encoder.forward(*_batch(encoder, setup, step, masked=False)),
        encoder.forward(_batch(encoder, setup, step)[0], Masks(0, step + 1, 0.1, setup.masks), view_labels(BATCH)),
    )
    queries, keys = _views(on[0], setup)
    still, still_keys = _views(off[0], setup)
    unit, unit_keys = normalize(queries)[0], normalize(keys)[0]
    scores = queries @ keys.T if setup.dot else unit @ unit_keys.T
    loss = float(run.losses[-5:].mean())
    plain = normalize(still)[0]
    between = plain @ plain.T - 2 * np.eye(BATCH)
    used = in_use(run, CLEAN)
    trained = encoder.encode(CLEAN)
    return {
        "loss / log N": loss / np.log(BATCH),
        "collapsed": collapse_guard(still, loss, BATCH).collapsed,
        "right rows": float((scores.argmax(axis=1) == np.arange(BATCH)).mean()),
        "twins apart, dropout off": alignment(still, still_keys),
        "twins apart, dropout on": alignment(queries, keys),
        "same row, next masks": alignment(off[0] if setup.masks == "off" else on[0], later[0]),
        "largest |score|": float(np.abs(scores).max()),
        "closest other row": float(between.max()),
        "nearer by tag than by text": _follows_tag(encoder),
        "encoded twice": alignment(used, in_use(run, CLEAN, step=1)),
        "against training path": alignment(used, trained),
        "alone and padded": alignment(used, in_use(run, CLEAN, longest=24)),
    }


def _follows_tag(encoder):
    """Share of tagged texts that lie nearer to another text with their tag than to their text with another tag."""
    texts = CLEAN[: 3 * BATCH]
    tagged = [f"{tag} {tag} {tag} {text}" for tag, text in zip(TAGS * 3, texts, strict=True)]
    same_text = [f"{tag} {tag} {tag} {text}" for tag, text in zip(np.roll(TAGS * 3, 1), texts, strict=True)]
    x, y = normalize(encoder.encode(tagged))[0], normalize(encoder.encode(same_text))[0]
    return float(((x * np.roll(y, -1, axis=0)).sum(axis=1) > (x * y).sum(axis=1)).mean())


#: measurement -> the head of its column
SHORT = {
    "loss / log N": "loss",
    "collapsed": "point",
    "right rows": "right",
    "twins apart, dropout off": "twins off",
    "twins apart, dropout on": "twins on",
    "same row, next masks": "next masks",
    "largest |score|": "|score|",
    "closest other row": "closest",
    "nearer by tag than by text": "by tag",
    "encoded twice": "twice",
    "against training path": "path",
    "alone and padded": "padded",
}
SAME = 1e-6  # squared distance of equal unit vectors in float32

#: cause -> the test of it, first match wins
CHECKS = {
    "no normalisation": lambda m: m["largest |score|"] > 1.001,
    "positives from the wrong rows": lambda m: m["twins apart, dropout off"] > 1e-4,
    "duplicates in a batch": lambda m: m["closest other row"] > 1 - SAME and m["loss / log N"] < 0.8,
    "learning rate far too high": lambda m: m["collapsed"],
    "dropout off in training": lambda m: m["twins apart, dropout on"] < SAME and m["same row, next masks"] < SAME,
    "one mask for both views": lambda m: m["twins apart, dropout on"] < SAME,
    "temperature too high": lambda m: m["right rows"] > 0.5 and m["loss / log N"] > 0.5,
    "a shortcut in the batch": lambda m: m["nearer by tag than by text"] > 0.7,
    "dropout on in use": lambda m: m["encoded twice"] > SAME,
    "padding not masked": lambda m: m["alone and padded"] > SAME,
    "another pooling in use": lambda m: m["against training path"] > SAME,
}


def diagnose(measurements):
    """Every cause whose test fires, in the order of CHECKS; the first is the diagnosis."""
    return [cause for cause, test in CHECKS.items() if test(measurements)]
