"""Sentences of the grammar as bags of words, and the retrieval, labelling and twin-consumer studies made from them.

The encoder is one matrix (PlainEncoder with no hidden layer) on word counts over their sum: the mean of word vectors.
It knows nothing of word order, which is enough for topics, duplicates and denials, and cheap.
"""

from dataclasses import replace

import numpy as np
from grammar import entailed, random_frame, say, vocabulary
from grammar_words import ACTIONS, NOUNS
from plain_encoder import PlainEncoder, train

from nano_simcse.layers import normalize
from nano_simcse.losses import info_nce
from nano_simcse.optim import Adam

WORDS = {word: number for number, word in enumerate(vocabulary())}
WIDTH = 24


def bags(sentences):
    """(n, words): share of each word in each sentence."""
    x = np.zeros((len(sentences), len(WORDS)))
    for row, sentence in zip(x, sentences, strict=True):
        for word in sentence.split():
            row[WORDS[word]] += 1
    return x / x.sum(axis=1, keepdims=True)


def frames(count, seed, rare=()):
    """count frames with different (agent, action, object, place); rare: objects that none may have."""
    rng, found = np.random.default_rng(seed), {}
    while len(found) < count:
        f = random_frame(rng)
        if f.object not in rare:
            found.setdefault((f.agent, f.action, f.object, f.place), f)
    return list(found.values())


def full_query(frame, rng):
    """The scene in other words: every part that it states."""
    return say(frame, rng)


def short_query(frame, rng):
    """Two keywords: the action and the object."""
    return " ".join(_pick(rng, options) for options in (
        [present for present, _ in ACTIONS[frame.action][0]], NOUNS[frame.object][0]))


def fit(first, second, seed=0, steps=200, shared=True, batch=48, tau=0.05, lr=0.02):
    """Encoder(s) trained on pairs of bags (n, words): (query encoder, document encoder), the same one if shared."""
    query = PlainEncoder(len(WORDS), WIDTH, 0, seed)
    document = query if shared else PlainEncoder(len(WORDS), WIDTH, 0, seed + 1)
    batch = min(batch, len(first))

    def draw(rng):
        rows = rng.choice(len(first), batch, replace=False)
        return first[rows], second[rows]

    train(query, draw, steps, tau=tau, lr=lr, other=None if shared else document, seed=seed)
    return query, document


def recall_at_1(query, document, queries, documents, right=None):
    """Percent of queries (bags) whose nearest document is theirs (row i), or one marked in right (n, n)."""
    best = (normalize(query.encode(queries))[0] @ normalize(document.encode(documents))[0].T).argmax(axis=1)
    right = np.eye(len(queries), dtype=bool) if right is None else right
    return 100 * float(right[np.arange(len(queries)), best].mean())


def same_scene(scenes):
    """bool (n, n): same action and object, which is all that a short query can ask for."""
    return np.array([[(a.action, a.object) == (b.action, b.object) for b in scenes] for a in scenes])


def denied(frame):
    """The same scene with "never", or without it."""
    return replace(frame, negated=not frame.negated)


class Consumers:
    """One set of sentences for two uses. A reader of topics wants a scene and its denial together; a checker of facts
    wants them apart. Test items: an anchor, its paraphrase, its denial, and another scene.

    DEMANDS on the cosines of the anchor with these three: "like" is within 0.1, "over" by 0.2. The first and the last
    exclude each other on every item; the second and the last do not.
    """

    DEMANDS = ("denial like paraphrase", "denial over other scene", "paraphrase over denial")

    def __init__(self, seed=0, train_size=400, test_size=200):
        rng = np.random.default_rng([seed, 95])
        scenes = frames(train_size + test_size, seed)
        self.rng, self.train = rng, scenes[:train_size]
        test = scenes[train_size:]
        self.anchor, self.same = bags([say(f, rng) for f in test]), bags([say(f, rng) for f in test])
        self.denial = bags([say(denied(f), rng) for f in test])
        self.other = bags([say(f, rng) for f in test[1:] + test[:1]])

    def fit(self, uses, steps=200, seed=0, batch=48, tau=0.05):
        """An encoder trained for one use, or for both in alternating batches."""
        encoder = PlainEncoder(len(WORDS), WIDTH, 0, seed)
        rng = self.rng

        def say_all(chosen, change=lambda f: f):
            return bags([say(change(self.train[i]), rng) for i in chosen])

        adam = Adam(encoder.params)
        for step in range(steps):
            use = uses[step % len(uses)]
            chosen = rng.choice(len(self.train), batch, replace=False)
            x = [say_all(chosen), say_all(chosen, denied if use == "topic" else lambda f: f)]
            if use == "fact":
                x.append(say_all(chosen, denied))  # hard negatives
            h, back = encoder.forward(np.concatenate(x))
            parts = np.split(h, len(x))
            _, loss_back = info_nce(*parts[:2], tau, hard_negatives=parts[2] if use == "fact" else None)
            adam.step(back(np.concatenate(loss_back())), 0.02)
        return encoder

    def cosines(self, encode):
        """(3, items): cosine of each anchor with its paraphrase, its denial and another scene."""
        a, *others = (normalize(encode(x))[0] for x in (self.anchor, self.same, self.denial, self.other))
        return np.array([(a * x).sum(axis=1) for x in others])

    @staticmethod
    def served(cosines):
        """bool (3, items): which of DEMANDS each item meets; cosines (3, items)."""
        same, denial, other = cosines
        return np.array([denial > same - 0.1, denial > other + 0.2, same > denial + 0.2])


def directed_pairs(count, seed):
    """Bags of premises and of what follows from them: the relation has a direction."""
    rng = np.random.default_rng([seed, 96])
    scenes = [random_frame(rng) for _ in range(count)]
    return bags([say(f, rng) for f in scenes]), bags([say(entailed(f, rng), rng) for f in scenes])


def directions(shared, seed=0):
    """Share of 300 test pairs (premise, conclusion) for which the right direction scores higher, and share of ties."""
    q, d = fit(*directed_pairs(900, seed), shared=shared, seed=seed)
    a, b = directed_pairs(300, seed + 1)
    there, back = ((normalize(q.encode(x))[0] * normalize(d.encode(y))[0]).sum(axis=1) for x, y in ((a, b), (b, a)))
    return [float(np.mean(there > back)), float(np.mean(there == back))]


def by_length(scenes, test, counts=(50, 900), seed=174):
    """recall@1 (2 x counts x 2, 2) of encoders trained on (query, sentence) pairs. Rows: keyword or whole-sentence
    training, number of pairs, one tower or two; columns: asked with keywords, with whole sentences."""
    rng, makers = np.random.default_rng(seed), (short_query, full_query)
    asked = [bags([make(f, rng) for f in test]) for make in makers]
    documents, right = bags([say(f, rng) for f in test]), (same_scene(test), None)
    rows = []
    for make in makers:
        for count in counts:
            first, second = bags([make(f, rng) for f in scenes[:count]]), bags([say(f, rng) for f in scenes[:count]])
            for shared in (True, False):
                pair = fit(first, second, shared=shared)
                rows.append([recall_at_1(*pair, x, documents, r) for x, r in zip(asked, right, strict=True)])
    return np.array(rows)


def in_code(scenes, test, seed=175):
    """recall@1 of one tower and of two where queries are in code: every word is written as another one."""
    rng = np.random.default_rng(seed)
    code = rng.permutation(len(WORDS))
    first, second, asked, documents = (bags([say(f, rng) for f in part]) for part in (scenes, scenes, test, test))
    return [recall_at_1(*fit(first[:, code], second, shared=s), asked[:, code], documents) for s in (True, False)]


def rare_objects(seed=176, rare=("violin", "box"), common=("car", "bicycle"), scenes_asked=60):
    """recall@1 of whole-sentence queries about objects no training pair had, and about objects that many had.

    Each object has two words ("violin", "fiddle"), and the documents hold every scene asked for with all four objects,
    so that only the object tells the answer.
    """
    rng = np.random.default_rng(seed)
    scenes = frames(900, 1, rare)
    encoder, _ = fit(*(bags([say(f, rng) for f in scenes]) for _ in range(2)))
    things = ("instrument", "vehicle", "container")
    base = [f for f in frames(2000, 2) if ACTIONS[f.action][2][:3] == things][:scenes_asked]
    told = [replace(f, object=thing) for thing in (*rare, *common) for f in base]
    asked, documents = (normalize(encoder.encode(bags([say(f, rng) for f in told])))[0] for _ in range(2))
    hit = [told[best] == f for best, f in zip((asked @ documents.T).argmax(axis=1), told, strict=True)]
    return (100 * np.reshape(hit, (2, -1)).mean(axis=1)).tolist()


def same_action(scenes, seed=177):
    """Bags of sentences paired by action only: the pairs a reader of topics would make."""
    rng, by_action = np.random.default_rng(seed), {}
    for f in scenes:
        by_action.setdefault(f.action, []).append(f)
    return bags([say(f, rng) for f in scenes]), bags([say(_pick(rng, by_action[f.action]), rng) for f in scenes])


def _pick(rng, options):
    return options[int(rng.integers(len(options)))]
