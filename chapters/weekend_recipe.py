"""SimCSE from nothing in one script: data, encoder, training step, log, best checkpoint, diagnosis.

    python chapters/weekend_recipe.py
    python chapters/weekend_recipe.py --positives entailment --device cuda --steps 400

The sentences come from grammar.py, so that similarity has a known gold score. Between the three settings only the
positives and negatives change; encoder, loss, temperature and optimiser stay as they are.
"""

import argparse
from dataclasses import dataclass

import numpy as np
from grammar import graded_pairs, sentences, triples, vocabulary

from nano_simcse.backend import array_module, resolve_device, to_device, to_host
from nano_simcse.data.batches import pack
from nano_simcse.encoder import EncoderConfig, encoder_forward, init_parameters
from nano_simcse.evaluation import spearman
from nano_simcse.geometry import CollapseReport, alignment, collapse_guard, uniformity, unit_rows
from nano_simcse.layers import pool
from nano_simcse.losses import info_nce
from nano_simcse.masks import Masks, row_labels
from nano_simcse.optim import AdamW, clip_global_norm, learning_rate
from nano_simcse.parameters import Parameters

#: what a query is paired with: itself under another mask; a sentence that follows; that, and one that contradicts
POSITIVES = ("dropout", "entailment", "entailment + contradiction")
RECIPE = (
    ("sentences, one a line; scored pairs for tuning and others for the report", "ch. 0, 8"),
    ("a transformer with its dropout on (for real work: with pretrained weights)", "ch. 2"),
    ("all views of a batch in one pass, each with masks of its own", "ch. 2"),
    ("InfoNCE on cosines, temperature 0.05, the rest of the batch as negatives", "ch. 1, 5"),
    ("AdamW, short warm-up, gradient norm clipped", "ch. 9"),
    ("every few steps, dropout off: loss, alignment, uniformity, score", "ch. 3"),
    ("keep the checkpoint with the best tuning score, report the other pairs", "ch. 8"),
    ("diagnose: cone? collapse? loss at chance?", "ch. 6, 8"),
)
LOG = ("step", "loss", "alignment", "uniformity", "score")
WORDS = ["[PAD]", "[CLS]", "[SEP]", *vocabulary()]
NUMBER = {word: number for number, word in enumerate(WORDS)}
CONFIG = EncoderConfig(len(WORDS), layers=1, width=32, heads=2, max_positions=32)


def tokens(sentence):
    """[CLS], the words, [SEP] as ids."""
    return np.array([NUMBER[word] for word in ("[CLS]", *sentence.split(), "[SEP]")], np.int32)


def examples(positives, count, seed):
    """count examples, each a list of its V views as token rows."""
    if positives == "dropout":
        return [[tokens(s)] * 2 for s in sentences(count, seed)]
    views = 2 + (positives == "entailment + contradiction")
    return [[tokens(s) for s in triple[:views]] for triple in triples(count, seed)]


def initial(seed, device):
    """Fresh parameters on a device; a model this narrow wants weights of size 1 / sqrt(width), not 0.02."""
    params = init_parameters(CONFIG, seed)
    for weight in params.values():
        if weight.ndim == 2:
            weight *= np.float32(50 / np.sqrt(CONFIG.width))
    return Parameters(params.shapes, to_device(params.flat, device))


def encode(params, texts, device):
    """Embeddings (n, D) on the host, dropout off."""
    batch = pack([tokens(text) for text in texts]).to(device)
    hidden, _ = encoder_forward(params, CONFIG, batch, grad=False)
    return to_host(pool(hidden, batch, "mean")[0])


def evaluate(params, pairs, device):
    """Alignment of the paraphrases, uniformity, and 100 x Spearman of cosine and gold score."""
    first, second, gold = zip(*pairs, strict=True)
    a, b = encode(params, first, device), encode(params, second, device)
    same = np.array(gold) == max(gold)
    cosines = (unit_rows(a) * unit_rows(b)).sum(axis=1)
    return alignment(a[same], b[same]), uniformity(a), 100 * spearman(np.round(cosines, 6), gold)


def training_step(params, chosen, masks, gradients, device="cpu", temperature=0.05):
    """Loss of a batch of N examples of V views; its gradients go into `gradients`. All of SimCSE is here."""
    n, views, xp = len(chosen), len(chosen[0]), array_module(params.flat)
    rows = [example[view] for view in range(views) for example in chosen]  # all of view 0, then view 1, ...
    labels = row_labels(np.tile(np.arange(n), views), np.repeat(np.arange(views), n))
    batch = pack(rows, labels).to(device)
    hidden, hidden_back = encoder_forward(params, CONFIG, batch, masks)
    h, pool_back = pool(hidden, batch, "mean")
    loss, loss_back = info_nce(h[:n], h[n : 2 * n], temperature, hard_negatives=h[2 * n :] if views == 3 else None)
    gradients.flat[...] = 0
    hidden_back(pool_back(xp.concatenate(loss_back())), gradients)
    return loss


@dataclass
class Outcome:
    """What `weekend` found: rows of LOG, the test score before and after, and a cloud with the verdict on it."""

    log: np.ndarray
    before: float
    after: float
    cloud: np.ndarray
    verdict: CollapseReport


def weekend(positives="dropout", device="cpu", steps=60, size=64, rate=0.1, mode="independent", peak=5e-3, seed=0):
    """Train on 1,500 examples; the log has five evaluations, the outcome belongs to the best of them."""
    device = resolve_device(device)
    rng, train = np.random.default_rng(seed), examples(positives, 1500, seed)
    tuning, test = graded_pairs(400, seed=101), graded_pairs(800, seed=102)
    params = initial(seed, device)
    gradients, adam = params.zeros_like(), AdamW(params, weight_decay=0.01)
    before, best, kept, log = evaluate(params, test, device)[2], -np.inf, None, []
    for step in range(steps + 1):
        chosen = [train[i] for i in rng.choice(len(train), size, replace=False)]
        loss = training_step(params, chosen, Masks(seed, step, rate, mode), gradients, device)
        if step % (steps // 4) == 0:
            log.append((step, float(loss), *evaluate(params, tuning, device)))
            if log[-1][-1] > best:
                best, kept = log[-1][-1], params.copy()
        if step < steps:
            clip_global_norm(gradients, 5.0)
            adam.step(gradients, learning_rate(peak, step, steps, warmup=steps // 10, schedule="constant"))
    cloud = encode(kept, [pair[0] for pair in test[:300]], device)
    candidates = size * (len(train[0]) - 1)
    verdict = collapse_guard(cloud, loss=log[-1][1], candidates=candidates)
    return Outcome(np.array(log), before, evaluate(kept, test, device)[2], cloud, verdict)


if __name__ == "__main__":
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--positives", default="dropout", choices=POSITIVES)
    ask.add_argument("--device", default="cpu", help="cpu, cuda or cuda:i")
    ask.add_argument("--steps", type=int, default=60)
    args = ask.parse_args()
    done = weekend(args.positives, args.device, args.steps)
    print(*LOG, sep="\t")
    for line in done.log:
        print(f"{line[0]:.0f}", *(f"{x:.3f}" for x in line[1:]), sep="\t")
    print(f"test score {done.before:.1f} -> {done.after:.1f};", *(done.verdict.reasons or ["no sign of collapse"]))
