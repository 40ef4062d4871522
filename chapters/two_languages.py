"""A second language for the grammar, and a student that learns to put it where an English teacher puts English.

A translation turns the order of the words round and replaces every word by another, except for a share of words that
both languages keep, as names, terms and numbers are kept. Teacher and student average word vectors.
"""

import numpy as np
from bag_encoder import BagEncoder
from grammar import sentences, vocabulary
from supervised_experiment import source_pairs

from nano_simcse.evaluation import paired_recall
from nano_simcse.layers import normalize
from nano_simcse.losses import distillation, info_nce

WIDTH, HELD_OUT, BATCH = 16, 118, 64


def teacher(pairs=800, steps=300, seed=0):
    """English only, trained with InfoNCE on paraphrases. Returns (encoder, losses)."""
    encoder, rng, losses = BagEncoder(vocabulary(), WIDTH, seed), np.random.default_rng([seed, 8]), []
    first, second = (encoder.bags(side) for side in zip(*source_pairs("paraphrase", pairs, seed + 1), strict=True))
    for _ in range(steps):
        chosen = rng.choice(pairs, BATCH, replace=False)
        q, p = first[chosen], second[chosen]
        loss, back = info_nce(q @ encoder.table, p @ encoder.table, 0.05)
        encoder.step((q, p), back())
        losses.append(float(loss))
    return encoder, np.array(losses)


class Languages:
    """kept: share of the vocabulary that both languages use.

    held_out: 118 English sentences that `encoder` tells apart (cosines below `least_apart`); train: the others.
    """

    def __init__(self, encoder, kept=0.5, seed=0, count=1200, least_apart=0.95):
        words = list(vocabulary())
        chosen = np.random.default_rng([seed, 7]).choice(len(words), int(kept * len(words)), replace=False)
        self.kept = {words[i] for i in chosen}
        self.words = words + [self.translate(word) for word in words if word not in self.kept]
        everything = sentences(count, seed=seed + 7)
        rows, picked = normalize(encoder.encode(everything))[0], []
        for i, row in enumerate(rows):
            if len(picked) < HELD_OUT and (rows[picked] @ row < least_apart).all():
                picked.append(i)
        self.held_out = [everything[i] for i in picked]
        self.train = [s for s in everything if s not in set(self.held_out)]

    def translate(self, sentence):
        """Words in reverse order; a word that is not kept is spelled backwards and ends in -o."""
        return " ".join(word if word in self.kept else word[::-1] + "o" for word in reversed(sentence.split()))

    def translations(self, english):
        return [self.translate(sentence) for sentence in english]


def recall(queries, targets):
    """Recall@1 in percent of row i finding row i by cosine."""
    return paired_recall(queries, targets)["recall_at_1"]


def distil(encoder, languages, steps=400, seed=5):
    """(student, losses): vectors for both vocabularies, from sentence pairs and the teacher's unit vectors alone."""
    student, rng, losses = BagEncoder(languages.words, WIDTH, seed), np.random.default_rng(seed), []
    targets = normalize(encoder.encode(languages.train))[0]
    english, other = student.bags(languages.train), student.bags(languages.translations(languages.train))
    for _ in range(steps):
        chosen = rng.choice(len(english), BATCH, replace=False)
        x, y = english[chosen], other[chosen]
        loss, back = distillation(x @ student.table, y @ student.table, targets[chosen])
        student.step((x, y), back())
        losses.append(float(loss))
    return student, np.array(losses)


def cut(sentence, words):
    """The first `words` words of a sentence: what an encoder with a token limit reads."""
    return " ".join(sentence.split()[:words])
