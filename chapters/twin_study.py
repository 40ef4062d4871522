"""What makes a good positive? Edits of grammar sentences, the damage they do, encoders trained on them (chapter 2).

The grammar can read an edited sentence back, so "the meaning changed" is computed and not judged.
"""

from dataclasses import replace

import numpy as np
from grammar import above, contradicted, graded_pairs, kind_of, parse, random_frame, relation, say, vocabulary
from grammar_words import ACTIONS
from small_encoder import SmallEncoder, train, view_labels

from nano_simcse.geometry import uniformity
from nano_simcse.layers import normalize

DENIED = 0.25  # share of the scenes that are said not to happen


def scenes(count, rng):
    """Random frames, a quarter of them denied."""
    frames = [random_frame(rng) for _ in range(count)]
    return [replace(f, negated=bool(rng.random() < DENIED)) for f in frames]


# ---- edits: list of words -> list of words ----------------------------------------------------------------------


def crop(words, rng, share):
    """One run of neighbouring words, the sentence less `share` of its length."""
    keep = max(1, len(words) - max(1, round(share * len(words))))
    start = rng.integers(len(words) - keep + 1)
    return words[start : start + keep]


def delete(words, rng, share):
    """Every word goes with chance `share`; one stays in any case."""
    kept = [w for w in words if rng.random() >= share]
    return kept or [words[rng.integers(len(words))]]


def delete_one(words, rng):
    """One word less."""
    gone = rng.integers(len(words))
    return words[:gone] + words[gone + 1 :]


def swap_synonym(words, rng):
    """One word replaced by another word for the same concept, where there is one."""
    places = [i for i, w in enumerate(words) if len(_ALIKE.get(w, ())) > 1]
    return _change(words, places, _ALIKE, 1, rng)


def refill(words, rng, share=0.15):
    """`share` of the words hidden and filled in with any word that fits the place grammatically."""
    places = [i for i, w in enumerate(words) if len(_FITTING.get(w, ())) > 1]
    return _change(words, places, _FITTING, max(1, round(share * len(words))), rng)


def _change(words, places, options, count, rng):
    words = list(words)
    for i in rng.permutation(places)[:count].astype(int):
        others = [w for w in options[words[i]] if w != words[i]]
        words[i] = others[rng.integers(len(others))]
    return words


def concept_of(word):
    """The concept a word stands for, None for the, in, is, by, never."""
    frame = parse(word)
    return frame.action or frame.agent or frame.place or frame.manner


def _word_groups():
    """word -> words for the same concept in the same form, and word -> words of the same class."""
    alike, fitting = {}, {}
    for word in vocabulary():
        kind, concept = kind_of(word), concept_of(word)
        if concept is not None:
            alike.setdefault((kind, concept), []).append(word)
            if kind != "place" or above(concept)[-1] != concept:  # "in the outdoors" is no English
                fitting.setdefault(kind, []).append(word)
    return ({w: group for group in groups.values() for w in group} for groups in (alike, fitting))


_ALIKE, _FITTING = _word_groups()

EDITS = {
    "none (dropout only)": lambda words, rng: words,
    "crop 10%": lambda words, rng: crop(words, rng, 0.1),
    "crop 20%": lambda words, rng: crop(words, rng, 0.2),
    "crop 30%": lambda words, rng: crop(words, rng, 0.3),
    "word deletion 10%": lambda words, rng: delete(words, rng, 0.1),
    "word deletion 20%": lambda words, rng: delete(words, rng, 0.2),
    "word deletion 30%": lambda words, rng: delete(words, rng, 0.3),
    "delete one word": delete_one,
    "synonym replacement": swap_synonym,
    "masked word refill 15%": refill,
}


def damage(edit, frames, seed=0):
    """Shares of edited sentences that (say something else, contradict the original)."""
    rng = np.random.default_rng(seed)
    relations = []
    for frame in frames:
        words = say(frame, rng).split()
        relations.append(relation(frame, parse(" ".join(edit(words, rng)))))
    relations = np.array(relations)
    return np.mean(relations != "paraphrase"), np.mean(relations == "contradiction")


# ---- other sources of a positive --------------------------------------------------------------------------------


def next_scene(frame, rng, steps=1):
    """A later scene of the same story: the same agent does something else; the place may change."""
    for _ in range(steps):
        other = random_frame(rng)
        while other.object == frame.agent:
            other = random_frame(rng)
        place = frame.place if rng.random() < 0.5 else other.place
        frame = replace(other, agent=frame.agent, place=place)
    return frame


# ---- training ---------------------------------------------------------------------------------------------------


def informed_encoder(seed=0, offset=1.0):
    """A small encoder whose word vectors already know the concepts: what pretraining has done for BERT.

    Words of one concept, of concepts below one concept, and (as in any model of contexts) opposite actions have
    vectors with a common part; `offset` times one vector is added to every word: the cone.
    """
    encoder = SmallEncoder(vocabulary(), seed=seed)
    rng = np.random.default_rng([seed, 7])
    width, parts = encoder.config.width, {}
    common = rng.standard_normal(width)
    for word, number in encoder.ids.items():
        chain = _concepts(word)
        vector = offset * common + 0.6 * rng.standard_normal(width)
        for name in chain:
            part = parts.setdefault(name, rng.standard_normal(width))
            vector = vector + part / np.sqrt(len(chain))
        encoder.params["embeddings.word"][number] = 2 * vector / np.sqrt(width)
    return encoder


def _concepts(word):
    concept = concept_of(word)
    if concept not in ACTIONS:
        return above(concept) if concept else []
    opposite = ACTIONS[concept][1]
    return [concept] + (["/".join(sorted((concept, opposite)))] if opposite else [])


def positives(kind, frames):
    """draw(step) for `train`: batches of 32 pairs. kind: a name of EDITS, "next scene", "next three scenes"."""
    steps = {"next scene": (1,), "next three scenes": (1, 2, 3)}.get(kind)

    def pair(frame, rng):
        first = say(frame, rng)
        if steps:
            return first, say(next_scene(frame, rng, steps[rng.integers(len(steps))]), rng)
        return first, " ".join(EDITS[kind](first.split(), rng))

    def draw(encoder, seed):
        def batch(step):
            rng = np.random.default_rng([seed, step])
            chosen = rng.choice(len(frames), 32, replace=False)
            views = zip(*(pair(frames[i], rng) for i in chosen), strict=True)
            return tuple(encoder.rows(view) for view in views)

        return batch

    return draw


_held_out = {}


def held_out():
    """Training scenes, graded pairs, (sentence, paraphrase, contradiction) triples, denials; made once."""
    if not _held_out:
        rng = np.random.default_rng(3)
        frames = scenes(400, rng)
        plain = [replace(f, negated=False) for f in frames]
        _held_out["train"] = scenes(3000, np.random.default_rng(1))
        _held_out["pairs"] = graded_pairs(900, seed=7)
        _held_out["triples"] = [(say(f, rng), say(f, rng), say(contradicted(f, rng), rng)) for f in frames]
        _held_out["denials"] = [(say(f), say(replace(f, negated=True))) for f in plain]
    return _held_out


def cosines(encoder, pairs):
    """Cosine of the two sentences of each pair, dropout off."""
    left, right = (normalize(encoder.encode(list(column)))[0] for column in zip(*pairs, strict=True))
    return (left * right).sum(axis=1)


def judge(encoder):
    """Of an encoder: 100 x Spearman on graded pairs; percent of sentences that are nearer to a paraphrase than to a
    contradiction; mean cosine of a sentence and its denial, which differ in one word."""
    data = held_out()
    near = cosines(encoder, [(a, b) for a, b, _ in data["triples"]])
    wrong = cosines(encoder, [(a, c) for a, _, c in data["triples"]])
    return encoder.score(data["pairs"]), 100 * np.mean(near > wrong), cosines(encoder, data["denials"]).mean()


def trained(kind="none (dropout only)", rate=0.1, mode="independent", seed=0, steps=160, encoders=1):
    """What judge says of an informed encoder after training on that kind of positive."""
    encoder = informed_encoder(seed)
    other = informed_encoder(seed) if encoders == 2 else None
    draw = positives(kind, held_out()["train"])(encoder, seed)
    train(encoder, draw, steps, rate, mode, seed, other=other)
    return judge(encoder)


def fixed_masks(whose, seed=0, steps=160):
    """100 x Spearman and uniformity of an informed encoder in a narrow cone, trained on identical views.

    whose: "nobody" (no dropout), "sentence" (each sentence has a mask, the same in both views; the paper's control),
    "batch" (one mask for all rows of a step).
    """
    encoder, data = informed_encoder(seed, offset=3.0), held_out()
    labels = view_labels(32) if whose == "sentence" else np.repeat(view_labels(1)[:1], 64)
    draw = positives("none (dropout only)", data["train"])(encoder, seed)
    train(encoder, draw, steps, 0.1, "off" if whose == "nobody" else "shared", seed, labels=labels)
    return encoder.score(data["pairs"]), uniformity(encoder.encode([a for a, _, _ in data["pairs"][:400]]))


_PLAIN = "none (dropout only)"
#: The long studies: name -> cases, each a row name and the arguments of `trained` (or of `fixed_masks`).
CASES = {
    "edits": {
        "before training": {"steps": 0},
        **{name: {"kind": name} for name in list(EDITS)[:8]},
        "delete one word, without dropout": {"kind": "delete one word", "rate": 0.0, "mode": "off"},
        **{name: {"kind": name} for name in [*list(EDITS)[8:], "next scene", "next three scenes"]},
    },
    "two encoders": {
        name: {"kind": name, "encoders": 2} for name in (_PLAIN, "delete one word", "next scene", "next three scenes")
    },
    "rates": {
        "0": {"rate": 0.0, "mode": "off"},
        **{str(rate): {"rate": rate} for rate in (0.01, 0.05, 0.1, 0.15, 0.2, 0.5)},
        "fixed 0.1": {"mode": "shared"},
    },
    "whose mask": {
        "nobody (rate 0)": {"whose": "nobody"},
        "each sentence": {"whose": "sentence"},
        "the whole batch": {"whose": "batch"},
    },
}
#: Their last results, means of seeds 0 and 1: Spearman, paraphrase first, cosine with denial (or uniformity).
LAST = {
    "edits": [
        ["before training", 41.845, 74.375, 0.989],
        ["none (dropout only)", 46.327, 70.375, 0.804],
        ["crop 10%", 48.559, 68.25, 0.902],
        ["crop 20%", 49.349, 71.0, 0.9],
        ["crop 30%", 48.861, 70.875, 0.907],
        ["word deletion 10%", 49.515, 71.625, 0.903],
        ["word deletion 20%", 51.155, 72.25, 0.916],
        ["word deletion 30%", 51.328, 71.75, 0.935],
        ["delete one word", 48.988, 71.25, 0.91],
        ["delete one word, without dropout", 50.908, 73.5, 0.864],
        ["synonym replacement", 46.161, 75.625, 0.728],
        ["masked word refill 15%", 34.128, 72.25, 0.565],
        ["next scene", 48.684, 61.375, 0.994],
        ["next three scenes", 48.947, 59.375, 0.995],
    ],
    "two encoders": [
        ["none (dropout only)", 45.619, 72.25, 0.783],
        ["delete one word", 48.512, 72.0, 0.899],
        ["next scene", 49.024, 60.5, 0.99],
        ["next three scenes", 48.218, 58.75, 0.992],
    ],
    "rates": [
        ["0", 48.633, 71.5, 0.689],
        ["0.01", 49.954, 72.25, 0.719],
        ["0.05", 48.16, 73.25, 0.752],
        ["0.1", 46.327, 70.375, 0.804],
        ["0.15", 44.077, 71.5, 0.767],
        ["0.2", 42.276, 71.75, 0.78],
        ["0.5", 36.476, 71.0, 0.998],
        ["fixed 0.1", 40.257, 70.25, 0.569],
    ],
    "whose mask": [
        ["nobody (rate 0)", 51.14, -3.21],
        ["each sentence", 25.478, -2.088],
        ["the whole batch", 47.861, -2.418],
    ],
}


def again(name):
    """Run a long study: one row of numbers per case, mean of seeds 0 and 1; about 5 seconds a case."""
    study = fixed_masks if name == "whose mask" else trained
    return np.array([np.mean([study(**case, seed=seed) for seed in (0, 1)], axis=0) for case in CASES[name].values()])
