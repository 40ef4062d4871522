"""Chapter 16's helpers: a corpus of made sentences, encoders trained for it, and an inverted-file index by hand."""

import hashlib

import numpy as np
from grammar import parse, random_frame, say, similarity, vocabulary
from small_encoder import SmallEncoder, train

from nano_simcse.layers import normalize

PREFIXES = ("query ", "passage ")  # before a query, before a document
FUNCTION_WORDS = ("the", "in", "is", "by")


def corpus(count, seed=0):
    """(documents, queries): `count` different scenes as plain sentences, and a paraphrase of each."""
    rng, frames = np.random.default_rng(seed), {}
    while len(frames) < count:
        frame = random_frame(rng)
        frames.setdefault(say(frame), frame)
    queries = [say(frame, rng) for frame in frames.values()]
    return list(frames), queries


def keywords(sentence):
    """The sentence without its function words: how people type into a search box."""
    return " ".join(word for word in sentence.split() if word not in FUNCTION_WORDS)


def trained_encoder(steps, seed=0, width=32, batch=32):
    """A SmallEncoder trained with InfoNCE: PREFIXES[0] + keywords of a paraphrase finds PREFIXES[1] + the sentence."""
    encoder = SmallEncoder([*vocabulary(), *(prefix.strip() for prefix in PREFIXES)], width=width, seed=seed)
    rng = np.random.default_rng([seed, 6])

    def draw(_):
        frames = [random_frame(rng) for _ in range(batch)]
        queries = [PREFIXES[0] + keywords(say(frame, rng)) for frame in frames]
        return encoder.rows(queries), encoder.rows([PREFIXES[1] + say(frame) for frame in frames])

    train(encoder, draw, steps, rate=0.0, seed=seed, lr=3e-3)
    return Fingerprinted(encoder)


class Fingerprinted:
    """A SmallEncoder with a version: what an index asks for."""

    def __init__(self, encoder):
        self.encoder = encoder

    def encode(self, texts):
        return self.encoder.encode(texts)

    def fingerprint(self):
        return hashlib.sha256(self.encoder.params.flat.tobytes()).hexdigest()[:8]


class InvertedFile:
    """Rows sorted into cells around k-means centres; a search opens the `probes` nearest cells only."""

    def __init__(self, rows, cells, seed=0, rounds=10):
        self.rows = normalize(rows)[0]
        rng = np.random.default_rng(seed)
        centres = self.rows[rng.choice(len(rows), cells, replace=False)]
        for _ in range(rounds):
            cell = (self.rows @ centres.T).argmax(axis=1)
            sums = np.zeros_like(centres)
            np.add.at(sums, cell, self.rows)
            filled = np.bincount(cell, minlength=cells) > 0
            centres[filled] = normalize(sums[filled])[0]
        self.centres, self.cell = centres, (self.rows @ centres.T).argmax(axis=1)

    def search(self, queries, k, probes):
        """(rows (q, k), -1 where the opened cells held fewer; share of the corpus that was compared)."""
        queries = normalize(queries)[0]
        opened = np.argsort(-(queries @ self.centres.T), axis=1, kind="stable")[:, :probes]
        found, compared = np.full((len(queries), k), -1), 0
        for i, query in enumerate(queries):
            members = np.flatnonzero(np.isin(self.cell, opened[i]))
            compared += len(members) + len(self.centres)
            order = np.argsort(-(self.rows[members] @ query), kind="stable")[:k]
            found[i, : len(order)] = members[order]
        return found, compared / len(queries) / len(self.rows)


def judge_of(queries, documents):
    """A perfect cross-encoder: reads query and document together and scores their meanings by the grammar's rules."""
    read_queries, read_documents = [parse(q) for q in queries], [parse(d) for d in documents]

    def judge(i, rows):
        return np.array([similarity(read_queries[i], read_documents[row]) if row >= 0 else -1.0 for row in rows])

    return judge
