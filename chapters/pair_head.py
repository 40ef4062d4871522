"""The small encoder trained to name the relation of two sentences, Sentence-BERT's way, on the grammar's NLI."""

import numpy as np
from small_encoder import SmallEncoder, view_labels
from supervised_experiment import WORDS, nli

from nano_simcse.layers import linear
from nano_simcse.losses import pair_classifier, pair_features
from nano_simcse.masks import Masks
from nano_simcse.optim import Adam
from nano_simcse.parameters import Parameters

RELATIONS = ("entailment", "neutral", "contradiction")
BATCH = 32


def labelled(count, seed):
    """3 count (premise, hypothesis, relation number) of count premises."""
    return [(a, x, c) for a, e, k, n in nli(count, seed) for c, x in enumerate((e, n, k))]


def train(examples, parts, steps=120, lr=3e-3, seed=0):
    """(encoder, head, losses) after training both; head: Parameters weight (D len(parts), 3) and bias (3,)."""
    encoder, rng, losses = SmallEncoder(WORDS, seed=seed), np.random.default_rng([seed, 6]), []
    head = Parameters({"weight": (encoder.config.width * len(parts), 3), "bias": (3,)})
    adam, head_adam = Adam(encoder.params), Adam(head)
    first, second = (encoder.rows([example[k] for example in examples]) for k in (0, 1))
    relation, labels = np.array([example[2] for example in examples]), view_labels(BATCH, 2)
    for step in range(steps):
        chosen = rng.choice(len(examples), BATCH, replace=False)
        rows = [side[i] for side in (first, second) for i in chosen]
        h, back = encoder.forward(rows, Masks(seed, step, 0.1), labels)
        u, v = h[:BATCH], h[BATCH:]
        loss, loss_back = pair_classifier(u, v, head["weight"], head["bias"], relation[chosen], parts=parts)
        du, dv, dweight, dbias = loss_back()
        gradients = head.zeros_like()
        gradients["weight"], gradients["bias"] = dweight, dbias
        adam.step(back(np.concatenate([du, dv])), lr)
        head_adam.step(gradients, lr)
        losses.append(float(loss))
    return encoder, head, np.array(losses)


def accuracy(encoder, head, parts, examples):
    """Percent of relations named right."""
    u, v = (encoder.encode([example[k] for example in examples]) for k in (0, 1))
    logits, _ = linear(pair_features(u, v, parts)[0], head["weight"], head["bias"])
    return float(100 * np.mean(logits.argmax(axis=1) == [example[2] for example in examples]))
