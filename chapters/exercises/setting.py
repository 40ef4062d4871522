"""What the three experiments share: an encoder, its batches of twins, held-out sentences with known meanings."""

import functools

import numpy as np
import trails
from grammar import graded_pairs, say, sentences
from small_encoder import train, view_labels
from twin_study import informed_encoder, scenes

from nano_simcse.masks import Masks

STEPS, BATCH = 40, 32


def fresh_encoder(seed, pooling="mean"):
    """A small encoder whose word vectors know the concepts (a stand-in for pretraining). pooling: "mean" or "cls"."""
    encoder = informed_encoder(seed)
    encoder.pooling = pooling
    return encoder


def train_on_twins(encoder, seed, rate=0.1, mode="independent", steps=STEPS):
    """Unsupervised SimCSE in place: each batch is 32 sentences, twice. mode: "independent", "shared" or "off", the
    masks of the two views. Returns the losses."""
    rows = encoder.rows(_corpus())

    def draw(step):
        chosen = np.random.default_rng([seed, step]).choice(len(rows), BATCH, replace=False)
        batch = [rows[i] for i in chosen]
        return batch, batch

    return train(encoder, draw, steps, rate, mode, seed)


def twin_vectors(encoder, seed, rate=0.1, mode="independent"):
    """Vectors of both views of the held-out sentences, dropout on."""
    rows = encoder.rows(paraphrases()[0])
    n = len(rows)
    h, _ = encoder.forward([*rows, *rows], Masks(seed, STEPS, rate, mode), view_labels(n))
    return h[:n], h[n:]


@functools.cache
def _corpus():
    return sentences(600, seed=2)


@functools.cache
def paraphrases():
    """Two lists of 150 held-out sentences; number i of both say the same in other words."""
    rng = np.random.default_rng(3)
    left, right = zip(*((say(frame, rng), say(frame, rng)) for frame in scenes(150, rng)), strict=True)
    return list(left), list(right)


@functools.cache
def pairs():
    """300 held-out (sentence, sentence, similarity from 0 to 5), for encoder.score."""
    return graded_pairs(300, seed=7)


def world_encoder(world, sentences):
    """An untrained linear encoder in the random world of that number (trails.py), with so many training sentences.
    .run(steps) trains it on dropout twins, in batches of 32; .score() is its Spearman correlation on held-out pairs."""
    encoder = trails.Trail("independent masks", 0.1, world, every=10**6)
    encoder.world.train = encoder.world.train[:sentences]
    encoder.world.meanings = encoder.world.meanings[:sentences]
    return encoder
