"""Keys of the three experiments: the grader runs them too, on a seed of its own, and the wrong ways to run them.

The bounds behind the verdicts hold for seeds 0 to 5 (dropout, pooling) and worlds 0 to 17 in threes (data).
"""

import functools

import numpy as np

from chapters.exercises.grading import Case, Key, Slip
from chapters.exercises.setting import (
    fresh_encoder,
    pairs,
    paraphrases,
    train_on_twins,
    twin_vectors,
    world_encoder,
)
from nano_simcse.geometry import alignment, uniformity

# ---- dropout_off ----------------------------------------------------------------------------------------------------


@functools.cache
def _trained(seed, pooling="mean", mode="independent"):
    encoder = fresh_encoder(seed, pooling)
    train_on_twins(encoder, seed, mode=mode)
    return encoder


@functools.cache
def _spread(seed, mode, held_out=True, trained=True):
    encoder = _trained(seed, mode=mode) if trained else fresh_encoder(seed)
    if held_out:
        left, right = map(encoder.encode, paraphrases())
    else:
        left, right = twin_vectors(encoder, seed, mode=mode)
    return alignment(left, right), uniformity(left)


def _off_verdict(table):
    (align_on, _), (align_off, uniform_off) = table
    if uniform_off > -0.1:
        return "collapse"
    return "worse alignment" if align_off > align_on + 0.05 else "no difference"


def _off_right(seed):
    table = np.array([_spread(seed, "independent"), _spread(seed, "off")])
    return table, _off_verdict(table)


def _off_slip(kind):
    def run(seed):
        if kind == "twins":
            table = [_spread(seed, mode, held_out=False) for mode in ("independent", "off")]
        else:
            off = _spread(seed, "shared" if kind == "shared" else "off", trained=kind != "untrained")
            table = [_spread(seed, "independent", trained=kind != "untrained"), off]
        table = np.array(table)
        verdict = _off_right(seed)[1]
        if kind in ("rows", "columns"):
            table = table[::-1] if kind == "rows" else table[:, ::-1]
        if kind in ("collapse", "no difference"):
            verdict = kind
        return table, verdict

    return run


DROPOUT_OFF = Key(
    ("table", "verdict"),
    _off_right,
    lambda: [Case("a seed of the grader's", (1,))],
    (
        Slip("the second run has ONE mask for both views (shared); asked is no dropout at all.", _off_slip("shared"),
             ("table",)),
        Slip("measured on dropout twins; asked are the held-out paraphrases, dropout off.", _off_slip("twins"),
             ("table",)),
        Slip("these are the numbers of encoders that have not been trained.", _off_slip("untrained"), ("table",)),
        Slip("the rows are exchanged: first dropout on, then off.", _off_slip("rows"), ("table",)),
        Slip("the columns are exchanged: first alignment, then uniformity.", _off_slip("columns"), ("table",)),
        Slip("collapsed encoders have a uniformity near 0, all sentences in one place; read the second column.",
             _off_slip("collapse"), ("verdict",)),
        Slip("read the first column again: paraphrases are how far apart without dropout, and how far with it?",
             _off_slip("no difference"), ("verdict",)),
    ),
    tolerance=0.01,
    advice="A fresh encoder for each run, the seed that was given, the defaults of train_on_twins.",
)


# ---- mean_pooling ---------------------------------------------------------------------------------------------------


@functools.cache
def _pooled(seed, trained, read):
    encoder = _trained(seed, trained) if trained else fresh_encoder(seed)
    kept, encoder.pooling = encoder.pooling, read
    score = encoder.score(pairs())
    encoder.pooling = kept
    return score


def _pooling_right(seed):
    scores = np.array([_pooled(seed, "cls", "cls"), _pooled(seed, "mean", "mean")])
    return scores, ("cls", "mean")[int(scores.argmax())]


def _pooling_slip(kind):
    def run(seed):
        cls, mean = _pooling_right(seed)[0]
        scores = {
            "reading": lambda: [cls, _pooled(seed, "cls", "mean")],
            "reading cls": lambda: [_pooled(seed, "mean", "cls"), mean],
            "untrained": lambda: [_pooled(seed, None, "cls"), _pooled(seed, None, "mean")],
            "order": lambda: [mean, cls],
            "verdict": lambda: [cls, mean],
        }[kind]()
        return np.array(scores), "cls" if kind == "verdict" else "mean"

    return run


MEAN_POOLING = Key(
    ("scores", "verdict"),
    _pooling_right,
    lambda: [Case("a seed of the grader's", (1,))],
    (
        Slip("the second encoder was trained with cls and only read by mean; train it with the mean as well.",
             _pooling_slip("reading"), ("scores",)),
        Slip("the first encoder was trained with the mean and only read by cls; train it with cls as well.",
             _pooling_slip("reading cls"), ("scores",)),
        Slip("these are the scores of encoders that have not been trained.", _pooling_slip("untrained"), ("scores",)),
        Slip("the order is cls first, then mean.", _pooling_slip("order"), ("scores",)),
        Slip("the larger score says otherwise.", _pooling_slip("verdict"), ("verdict",)),
    ),
    tolerance=0.01,
    advice="A fresh encoder for each pooling, the seed that was given, the defaults of train_on_twins.",
)


# ---- data_or_epochs -------------------------------------------------------------------------------------------------

RUNS = ((48, 60), (48, 240), (768, 240))  # sentences, steps


@functools.cache
def _world_score(world, sentences, steps):
    return world_encoder(world, sentences).run(steps).score()


def _worlds(worlds, runs=RUNS):
    return np.array([np.mean([_world_score(w, *run) for w in worlds]) for run in runs])


def _data_right(worlds):
    scores = _worlds(tuple(worlds))
    return scores, "data" if scores[2] > scores[1] else "epochs"


def _data_slip(kind):
    def run(worlds):
        runs = {"one": (RUNS[0], RUNS[1], (768, 60)), "both": (RUNS[0], (768, 60), RUNS[2])}.get(kind, RUNS)
        scores = _worlds(tuple(worlds)[:1] if kind == "one world" else tuple(worlds), runs)
        if kind == "untrained":
            scores = np.full(3, np.mean([world_encoder(w, 48).score() for w in worlds]))
        if kind == "sum":
            scores = scores * len(worlds)
        if kind == "order":
            scores = scores[[0, 2, 1]]
        return scores, "epochs" if kind == "verdict" else "data"

    return run


DATA_OR_EPOCHS = Key(
    ("scores", "verdict"),
    _data_right,
    lambda: [Case("worlds of the grader's", ((9, 10, 11),))],
    (
        Slip("the run with more data has fewer steps than the run with more epochs: two things changed.",
             _data_slip("one"), ("scores",)),
        Slip("the second run is more epochs over the SAME sentences.", _data_slip("both"), ("scores",)),
        Slip("this is the first world only; average over the worlds given.", _data_slip("one world"), ("scores",)),
        Slip("these are the scores of encoders that have not been trained.", _data_slip("untrained"), ("scores",)),
        Slip("the scores of the worlds are added up; asked is their mean.", _data_slip("sum"), ("scores",)),
        Slip("the order is: small, more epochs, more data.", _data_slip("order"), ("scores",)),
        Slip("compare the second and the third score: both have the same number of steps.", _data_slip("verdict"),
             ("verdict",)),
    ),
    tolerance=0.005,
    advice="A fresh encoder for each run and world, with the numbers of sentences and steps of the task.",
)

KEYS = {"dropout_off": DROPOUT_OFF, "mean_pooling": MEAN_POOLING, "data_or_epochs": DATA_OR_EPOCHS}
