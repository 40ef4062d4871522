"""Questions and the statements that answer them, for one encoder with two notions of similarity.

A question ("who sells the guitar in the park") is answered by a statement that names the agent. The corpus searched
also holds other wordings of the questions, as any forum does: alike, and useless as answers.
"""

from dataclasses import replace

import numpy as np
from grammar import entails, graded_pairs, random_frame, say, vocabulary
from grammar_words import ACTIONS, NOUNS, PLACES
from small_encoder import TEMPERATURE, SmallEncoder, train, view_labels

from nano_simcse.layers import normalize
from nano_simcse.losses import info_nce
from nano_simcse.masks import Masks
from nano_simcse.optim import Adam

COMPARE, QUERY, PASSAGE = "compare:", "query:", "passage:"
WORDS = [*vocabulary(), "who", COMPARE, QUERY, PASSAGE]
PAIR_TYPES = ("paraphrases", "question-answer", "both", "both, with prefixes")
SCORES = ("STS", "answer first", "among statements")
BATCH, LEARNING_RATE = 32, 6e-3


def ask(frame, rng):
    """The frame as a question for its agent, in random words."""

    def word(options):
        return options[int(rng.integers(len(options)))]

    where = f" in the {word(PLACES[frame.place][0])}" if frame.place else ""
    return f"who {word(ACTIONS[frame.action][0])[0]} the {word(NOUNS[frame.object][0])}{where}"


def answered(asked, told):
    """bool (questions, statements): the statement of frame b answers the question about frame a."""
    open_frames = [replace(a, agent=None, manner=None) for a in asked]
    return np.array([[entails(b, a) for b in told] for a in open_frames])


class Questions:
    """Scenes with different questions, split in two; for the test half also its sentences and who answers whom."""

    def __init__(self, seed=0, train_size=300, test_size=100):
        rng, found = np.random.default_rng(seed), {}
        while len(found) < train_size + test_size:
            frame = random_frame(rng)
            found.setdefault((frame.action, frame.object, frame.place), frame)
        frames = list(found.values())
        order = rng.permutation(len(frames))
        self.train, test = ([frames[i] for i in part] for part in np.split(order, [train_size]))
        self.questions, self.again = ([ask(f, rng) for f in test] for _ in range(2))
        self.statements = [say(f, rng) for f in test]
        self.answers = answered(test, test)
        self.pairs = graded_pairs(400, seed=103)


def train_on(pair_type, world, steps=100, seed=0):
    """An encoder trained on one of PAIR_TYPES, and the prefixes it expects: (comparing, query, passage)."""
    encoder, rng = SmallEncoder(WORDS, seed=seed), np.random.default_rng([seed, 9])
    prefixes = (COMPARE + " ", QUERY + " ", PASSAGE + " ") if pair_type.endswith("prefixes") else ("", "", "")

    def draw(step):
        frames = [world.train[i] for i in rng.choice(len(world.train), BATCH, replace=False)]
        if pair_type == "paraphrases" or (pair_type.startswith("both") and step % 2):
            forms = [ask if rng.random() < 0.5 else say for _ in frames]
            first = [prefixes[0] + form(f, rng) for form, f in zip(forms, frames, strict=True)]
            second = [prefixes[0] + form(f, rng) for form, f in zip(forms, frames, strict=True)]
        else:
            first = [prefixes[1] + ask(f, rng) for f in frames]
            second = [prefixes[2] + say(f, rng) for f in frames]
        return encoder.rows(first), encoder.rows(second)

    train(encoder, draw, steps, seed=seed, lr=LEARNING_RATE)
    return encoder, prefixes


def training_corpus(encoder, prefixes, world, seed=0):
    """Queries, entries and their embeddings from the training half, and which entry answers which query.

    The entries are the statements, then the questions in other words; the latter answer nothing.
    """
    rng = np.random.default_rng([seed, 10])
    queries = [prefixes[1] + ask(f, rng) for f in world.train]
    entries = [prefixes[2] + form(f, rng) for form in (say, ask) for f in world.train]
    right = answered(world.train, world.train)
    right = np.hstack([right, np.zeros_like(right)])
    return queries, entries, encoder.encode(queries), encoder.encode(entries), right


def continue_with(encoder, queries, entries, negatives, steps=40, seed=0):
    """Train on (query i, entry i, entry negatives[i]) in place; returns the losses (steps,)."""
    rows_q, rows_e = encoder.rows(queries), encoder.rows(entries)
    rng, adam, losses = np.random.default_rng([seed, 11]), Adam(encoder.params), []
    labels = view_labels(BATCH, 3)
    for step in range(steps):
        chosen = rng.choice(len(queries), BATCH, replace=False)
        rows = [rows_q[i] for i in chosen] + [rows_e[i] for i in chosen] + [rows_e[negatives[i]] for i in chosen]
        h, back = encoder.forward(rows, Masks(seed + 1000, step, 0.1), labels)
        loss, loss_back = info_nce(*np.split(h, 3)[:2], TEMPERATURE, hard_negatives=h[2 * BATCH :])
        adam.step(back(np.concatenate(loss_back())), LEARNING_RATE / 2)
        losses.append(float(loss))
    return np.array(losses)


def scores(encoder, prefixes, world):
    """SCORES of an encoder: 100 x Spearman on graded pairs; percent of questions whose nearest entry is an answer,
    in the corpus of statements and other questions, and among the statements alone."""
    compare, query, passage = prefixes
    sts = encoder.score([(compare + a, compare + b, gold) for a, b, gold in world.pairs])
    asked = normalize(encoder.encode([query + q for q in world.questions]))[0]
    corpus = normalize(encoder.encode([passage + s for s in [*world.statements, *world.again]]))[0]
    right = np.hstack([world.answers, np.zeros_like(world.answers)])
    nearest = [(asked @ corpus[:m].T).argmax(axis=1) for m in (len(corpus), len(world.statements))]
    return [sts, *(100 * right[np.arange(len(asked)), best].mean() for best in nearest)]
