"""Studies of chapter 13: skip-gram on exact counts, and what several runs of it agree on."""

from collections import Counter

import numpy as np
from scipy.optimize import minimize


def expected_loss(scores, joint, noise, k):
    """Mean skip-gram loss over all draws, for scores (V, V), pair shares joint (V, V) and noise (V,).

    sum_co joint_co log(1 + e^-s_co) + k sum_co p_c q_o log(1 + e^s_co), p_c the row sums of joint.
    """
    false = k * np.outer(joint.sum(axis=1), noise)
    return float((joint * np.logaddexp(0, -scores) + false * np.logaddexp(0, scores)).sum())


def frequency_only(shares, noise, k):
    """Least loss of a score that knows the context word alone: s_o = log p_o - log k q_o."""
    seen = shares > 0
    s = np.log(shares[seen]) - np.log(k * noise[seen])
    return float((shares[seen] * np.logaddexp(0, -s)).sum() + k * (noise[seen] * np.logaddexp(0, s)).sum())


def exact_optimum(joint, noise, k, width, seed=0):
    """(scores (V, V), loss) of the best two tables of `width` columns, by L-BFGS on the expected loss."""
    words, false = len(joint), k * np.outer(joint.sum(axis=1), noise)

    def objective(flat):
        v, u = flat.reshape(2, words, width)
        s = v @ u.T
        ds = false / (1 + np.exp(-s)) - joint / (1 + np.exp(s))
        return expected_loss(s, joint, noise, k), np.concatenate([ds @ u, ds.T @ v]).ravel()

    start = np.random.default_rng(seed).standard_normal(2 * words * width)
    found = minimize(objective, start, jac=True, method="L-BFGS-B",
                     options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-16, "gtol": 1e-10})
    v, u = found.x.reshape(2, words, width)
    return v @ u.T, float(found.fun)


def plural_pairs(vectors, least=20):
    """(word, word + "s") where both occur at least `least` times: pairs that ought to be near each other."""
    often = [w for w, n in zip(vectors.words, vectors.counts, strict=True) if n >= least and len(w) > 2]
    return [(w, f"{w}s") for w in often if f"{w}s" in set(often)]


def analogy_ranks(vectors, pairs, questions=200, seed=0):
    """a : b :: c : d for random pairs (a, b), (c, d).

    Returns (ranks of d near b - a + c (n,), ranks of d near c alone (n,), share of questions whose best answer, nothing
    excluded, is a word of the question). Both rankings leave out a, b and c.
    """
    draw, arithmetic, neighbour, inside = np.random.default_rng(seed), [], [], []
    for _ in range(questions):
        (a, b), (c, d) = (pairs[i] for i in draw.choice(len(pairs), 2, replace=False))
        arithmetic.append(vectors.analogy_rank(a, b, c, d))
        scores = vectors.scores(c)
        others = np.delete(scores, [vectors.row(w) for w in (a, b, c, d)])
        neighbour.append(1 + np.count_nonzero(others >= scores[vectors.row(d)]))
        inside.append(vectors.analogy(a, b, c, exclude_question=False)[0][0] in (a, b, c))
    return np.array(arithmetic), np.array(neighbour), float(np.mean(inside))


def stable_neighbours(runs, word, count=6):
    """(neighbours of `word` in all runs, in all but one) among its `count` nearest."""
    votes = Counter(w for run in runs for w, _ in run.nearest(word, count))
    return [[w for w, n in votes.items() if n == wanted] for wanted in (len(runs), len(runs) - 1)]


def neighbour_overlap(runs, words, count=6):
    """Share of a word's `count` nearest that two runs have in common, averaged over pairs of runs and words."""
    shares = []
    for word in words:
        sets = [{w for w, _ in run.nearest(word, count)} for run in runs]
        shares += [len(x & y) / count for i, x in enumerate(sets) for y in sets[:i]]
    return float(np.mean(shares))
