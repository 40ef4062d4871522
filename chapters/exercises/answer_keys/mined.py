"""Key of the exercise on mined negatives."""

import numpy as np
from scipy.special import logsumexp

from chapters.exercises.grading import Case, Key, Slip
from nano_simcse.layers import normalize
from nano_simcse.losses import duplicate_mask, hard_negative_loss

LARGE = "Subtract the largest logit of a row before the exponential."
OWN = "The positive carries the row's own id too, and stays a candidate."


def _mined_slip(kind):
    def run(Q, P, Nh, tau, pos_ids, neg_ids):
        n, k = len(Q), len(Nh) // len(Q)
        unit = (lambda x: x) if kind == "dot" else (lambda x: normalize(x)[0])
        z = unit(Q) @ unit(np.concatenate([P, Nh])).T / (1 if kind == "tau" else tau)
        mask = duplicate_mask(pos_ids, neg_ids)
        own = np.arange(n)
        if kind in ("unmasked", "mined block"):
            mask[:, :n] = False
        if kind in ("unmasked", "batch block"):
            mask[:, n:] = False
        if kind == "not shared":
            mask[:, n:] |= own[:, None] != np.repeat(own, k)
        if kind == "no batch":
            mask[:, :n] |= own[:, None] != own
        if kind == "no mined":
            mask[:, n:] = True
        if kind == "diagonal":
            mask[own, own] = True
        if kind == "zero":
            z = np.where(mask, 0.0, z)
        else:
            z = np.where(mask, -np.inf, z)
        positive = (unit(Q) * unit(P)).sum(axis=1) / (1 if kind == "tau" else tau)
        return (logsumexp(z, axis=1) - positive).mean()

    return run


def _mined_cases():
    found = []
    settings = (
        ("no id twice", 3, 1, [1, 2, 3], [4, 5, 6], OWN, 0.5),
        ("two queries, one answer", 4, 1, [1, 2, 1, 3], [4, 5, 6, 7], "Look at the ids of the batch.", 0.3),
        ("a miner found an answer", 3, 2, [1, 2, 3], [4, 2, 5, 1, 6, 7], "Look at the ids of the mined texts.", 0.7),
        ("tau = 0.0005", 3, 1, [1, 2, 2], [3, 4, 1], LARGE, 0.0005),
    )
    for number, (what, n, k, pos, neg, hint, tau) in enumerate(settings):
        rng = np.random.default_rng([46, number])
        q, p, mined = (2 * rng.standard_normal((rows, 5)) for rows in (n, n, n * k))
        texts = {}  # one id, one text
        for ids, rows in ((pos, p), (neg, mined)):
            for i, name in enumerate(ids):
                rows[i] = texts.setdefault(name, rows[i].copy())
        found.append(Case(what, (q, p, mined, tau, np.array(pos), np.array(neg)), {"1/N": 1 / n}, hint))
    return found


MINED = Key(
    ("loss",),
    lambda *arguments: hard_negative_loss(*arguments)[0],
    _mined_cases,
    (
        Slip("nothing is masked: a candidate that repeats the row's answer is no negative.", _mined_slip("unmasked")),
        Slip("repeats of the answer among the mined texts are masked, those in the batch are not.",
             _mined_slip("mined block")),
        Slip("repeats of the answer in the batch are masked, those among the mined texts are not.",
             _mined_slip("batch block")),
        Slip("each query sees its own mined texts only; they are shared over the batch.", _mined_slip("not shared")),
        Slip("the other rows of the batch are missing: they are negatives too.", _mined_slip("no batch")),
        Slip("the mined texts are not among the candidates.", _mined_slip("no mined")),
        Slip("the positive itself is masked; it has the row's own id but belongs in the denominator.",
             _mined_slip("diagonal")),
        Slip("a masked logit is set to 0, which is a candidate with cosine 0; it must take no probability at all.",
             _mined_slip("zero")),
        Slip("the rows are not scaled to length 1: the logits are cosines over tau.", _mined_slip("dot")),
        Slip("the factor 1/tau is missing in the logits.", _mined_slip("tau")),
    ),
    advice="Write the matrix of logits down for three queries and cross out what the ids forbid.",
)

KEYS = {"hard_negative_loss": MINED}
