"""Supervised training on the grammar: where positives and hard negatives come from, and what each is worth.

A setting names its views. A batch is N rows of every view in ONE forward pass of the small encoder: anchors, positives,
then one or two blocks of hard negatives. The score is 100 x Spearman correlation with graded pairs that were never
trained on; two more numbers are the mean cosines of held-out premises with their entailments and contradictions.
"""

import numpy as np
from grammar import (
    above,
    contradicted,
    entailed,
    graded_pairs,
    neutral,
    random_frame,
    say,
    triples,
    vocabulary,
)
from small_encoder import TEMPERATURE, SmallEncoder, view_labels

from nano_simcse.geometry import uniformity
from nano_simcse.layers import normalize
from nano_simcse.losses import info_nce
from nano_simcse.masks import Masks
from nano_simcse.optim import Adam

WORDS = vocabulary()
EXAMPLES, BATCH = 2000, 24


def _pair(anchor, positive):
    return lambda frame, rng: (say(anchor(frame, rng), rng), say(positive(frame, rng), rng))


def _same(frame, rng):
    return frame


def _twin(frame, rng):
    sentence = say(frame, rng)
    return sentence, sentence


def _noisy(frame, rng):
    return (_same if rng.random() < 0.7 else neutral)(frame, rng)


#: source of positives -> (frame, rng) -> (anchor, positive); the name says what it imitates.
SOURCES = {
    "dropout twin": _twin,
    "paraphrase": _pair(_same, _same),  # clean back-translation
    "noisy duplicate": _pair(_same, _noisy),  # 30% of the labels are wrong
    "two captions": _pair(entailed, entailed),  # each leaves out something of one scene
    "entailment": _pair(_same, entailed),
    "neutral": _pair(_same, neutral),
    "contradiction": _pair(_same, contradicted),
}


def overlap(a, b):
    """Jaccard: shared words over all words of the two sentences."""
    a, b = set(a.split()), set(b.split())
    return len(a & b) / len(a | b)


def source_pairs(name, count, seed=1):
    """count (anchor, positive) sentences of a source."""
    rng = np.random.default_rng(seed)
    return [SOURCES[name](random_frame(rng), rng) for _ in range(count)]


def nli(count, seed=1):
    """count (premise, entailment, contradiction, neutral) sentences."""
    rng = np.random.default_rng(seed)
    frames = [random_frame(rng) for _ in range(count)]
    kinds = (_same, entailed, contradicted, neutral)
    return [tuple(say(kind(frame, rng), rng) for kind in kinds) for frame in frames]


def train(examples, steps=150, seed=0, alpha=1.0, exclude=None, rate=0.1, lr=3e-3):
    """A trained SmallEncoder and its losses.

    examples: tuples of two sentences (pairs), three (with a hard negative) or more (several hard negatives).
    alpha: weight of a row's own hard negatives; exclude: bool (N, N (V - 1)) of candidates left out, or None.
    """
    encoder = SmallEncoder(WORDS, seed=seed)
    rows = [encoder.rows(list(view)) for view in zip(*examples, strict=True)]
    views = len(rows)
    labels = view_labels(BATCH, views)
    adam, rng, losses = Adam(encoder.params), np.random.default_rng(seed), []
    for step in range(steps):
        chosen = rng.choice(len(examples), BATCH, replace=False)
        h, back = encoder.forward([view[i] for view in rows for i in chosen], Masks(seed, step, rate), labels)
        queries, keys, *hard = np.split(h, views)
        # hard negatives of one row stand together: (N, V - 2, D) -> (N (V - 2), D)
        stacked = np.stack(hard, axis=1).reshape(-1, h.shape[1]) if hard else None
        weight = np.log(alpha) if hard else 0.0
        loss, loss_back = info_nce(
            queries, keys, TEMPERATURE, hard_negatives=stacked, log_weight=weight, exclude=exclude
        )
        dq, dk, *dh = loss_back()
        dhard = dh[0].reshape(BATCH, -1, h.shape[1]).swapaxes(0, 1).reshape(-1, h.shape[1]) if hard else dk[:0]
        adam.step(back(np.concatenate([dq, dk, dhard])), lr)
        losses.append(float(loss))
    return encoder, np.array(losses)


def own_only():
    """Exclude the contradictions of the other rows."""
    keep_own = ~np.eye(BATCH, dtype=bool)
    return np.concatenate([np.zeros((BATCH, BATCH), bool), keep_own], axis=1)


def others_only():
    """Exclude a row's own contradiction."""
    return np.concatenate([np.zeros((BATCH, BATCH), bool), np.eye(BATCH, dtype=bool)], axis=1)


DEV = graded_pairs(300, seed=90)
HELD_OUT = triples(200, seed=91)


def measure(encoder):
    """(score, cosine with entailments, cosine with contradictions, uniformity) of an encoder."""
    a, b, c = (normalize(encoder.encode(view))[0] for view in zip(*HELD_OUT, strict=True))
    return encoder.score(DEV), float((a * b).sum(1).mean()), float((a * c).sum(1).mean()), uniformity(a)


# ---- hubs ------------------------------------------------------------------------------------------------------


def mixed_corpus(specific=250, seed=92):
    """(sentences, is_generic): specific scenes, and for each its most general form (distinct ones once)."""
    rng = np.random.default_rng(seed)
    frames = list(dict.fromkeys(random_frame(rng) for _ in range(specific)))
    generic = {}
    for frame in frames:
        top = type(frame)(above(frame.agent)[-1], frame.action, above(frame.object)[-1])
        generic.setdefault(say(top), None)
    sentences = [say(frame, rng) for frame in frames] + list(generic)
    return sentences, np.arange(len(sentences)) >= len(frames)


def hubness(encoder, corpus):
    """(share of specific sentences whose nearest other sentence is a generic one, most claims on one sentence)."""
    sentences, generic = corpus
    x = normalize(encoder.encode(sentences))[0]
    cosines = x[~generic] @ x.T
    np.fill_diagonal(cosines, -np.inf)  # specific sentences come first
    nearest = cosines.argmax(axis=1)
    return float(generic[nearest].mean()), int(np.bincount(nearest).max())


# ---- the order of the blocks -----------------------------------------------------------------------------------


def train_free(wrong_order, n=8, width=16, steps=400, lr=0.05, seed=0):
    """Adam on n free triples (vectors, no encoder) with the blocks of candidates in either order.

    Returns the losses and the mean cosines anchor-entailment and anchor-contradiction at the end.
    """
    x = np.random.default_rng(seed).standard_normal((3, n, width))
    m, v, losses = np.zeros_like(x), np.zeros_like(x), []
    first, second = (2, 1) if wrong_order else (1, 2)
    for t in range(1, steps + 1):
        loss, back = info_nce(x[0], x[first], TEMPERATURE, hard_negatives=x[second])
        g = np.empty_like(x)
        g[0], g[first], g[second] = back()
        m += 0.1 * (g - m)
        v += 0.001 * (g * g - v)
        x -= lr * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        losses.append(float(loss))
    a, b, c = x / np.linalg.norm(x, axis=2, keepdims=True)
    return np.array(losses), (a * b).sum(axis=1).mean(), (a * c).sum(axis=1).mean()


# ---- the long study --------------------------------------------------------------------------------------------


def study(seeds=(0, 1, 2)):
    """{setting: (score, its standard deviation over seeds, cos entailment, cos contradiction, generic share)}."""
    quads, corpus = nli(EXAMPLES), mixed_corpus()
    pairs, hard = [q[:2] for q in quads], [q[:3] for q in quads]
    settings = {name: (source_pairs(name, EXAMPLES), {}) for name in SOURCES if name != "entailment"}
    settings |= {
        "entailment": (pairs, {}),
        "+ contradictions": (hard, {}),
        "+ own contradiction only": (hard, {"exclude": own_only()}),
        "+ others' contradictions only": (hard, {"exclude": others_only()}),
        "+ neutral as negative": ([(q[0], q[1], q[3]) for q in quads], {}),
        "+ contradiction and neutral": (quads, {}),
        "+ contradictions, alpha 0.5": (hard, {"alpha": 0.5}),
        "+ contradictions, alpha 2": (hard, {"alpha": 2.0}),
    }
    results = {}
    for name, (examples, options) in settings.items():
        encoders = [train(examples, seed=seed, **options)[0] for seed in seeds]
        values = np.array([measure(encoder) for encoder in encoders])
        share = np.mean([hubness(encoder, corpus)[0] for encoder in encoders])
        mean = values.mean(axis=0)
        results[name] = (mean[0], values[:, 0].std(), mean[1], mean[2], share)
    return results
