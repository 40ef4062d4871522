"""Keys of the exercises on measures: overlap of words, alignment and uniformity, effective rank, Spearman."""

from collections import Counter

import numpy as np
from scipy.special import logsumexp
from scipy.stats import pearsonr, rankdata

from chapters.exercises.grading import Case, Key, Slip
from nano_simcse import geometry
from nano_simcse.evaluation import spearman
from nano_simcse.layers import normalize

# ---- word_overlap ---------------------------------------------------------------------------------------------------


def _overlap_right(a, b):
    first, second = set(a.split()), set(b.split())
    return len(first & second) / len(first | second)


def _overlap_slip(kind):
    def run(a, b):
        first, second = set(a.split()), set(b.split())
        common = len(first & second)
        counts = Counter(a.split()), Counter(b.split())
        return {
            "repeats": (counts[0] & counts[1]).total() / (counts[0] | counts[1]).total(),
            "dice": 2 * common / (len(first) + len(second)),
            "sum": common / (len(first) + len(second)),
            "first": common / len(first),
            "shorter": common / min(len(first), len(second)),
            "letters": len(set(a) & set(b)) / len(set(a) | set(b)),
            "count": common,
            "distance": 1 - common / len(first | second),
        }[kind]

    return run


def _overlap_cases():
    pairs = (
        ("the dog chases the cat in the park", "the dog never chases the cat"),
        ("the lady sells the old guitar", "the chef sells the guitar in the old kitchen"),
        ("a child reads", "the woman repairs the violin and the bike"),
        ("the woman buys the bike", "the woman buys the bike"),
    )
    hints = ("", "", "Two sentences may have no word in common.", "A sentence and itself: the overlap is complete.")
    return [Case(f"pair {i + 1}", pair, hint=hint) for i, (pair, hint) in enumerate(zip(pairs, hints, strict=True))]


OVERLAP = Key(
    ("overlap",),
    _overlap_right,
    _overlap_cases,
    (
        Slip("repeated words are counted again; asked are distinct words.", _overlap_slip("repeats")),
        Slip("the common words stand twice in the denominator (and twice above): that is Dice's measure.",
             _overlap_slip("dice")),
        Slip("the common words are counted twice in the denominator.", _overlap_slip("sum")),
        Slip("divided by the words of one sentence: the result changes when the sentences are exchanged.",
             _overlap_slip("first")),
        Slip("divided by the words of the shorter sentence; asked are all distinct words of both.",
             _overlap_slip("shorter")),
        Slip("letters are compared; split the sentences into words.", _overlap_slip("letters")),
        Slip("this is a count; asked is a share.", _overlap_slip("count")),
        Slip("this is the share of words that are not common.", _overlap_slip("distance")),
    ),
    advice="Write the two sets of words down for a pair of short sentences.",
)


# ---- alignment_uniformity -------------------------------------------------------------------------------------------


def _spread_right(Za, Zb, t):
    return geometry.alignment(Za, Zb), geometry.uniformity(Za, t)


def _spread_slip(kind):
    def run(Za, Zb, t):
        n = len(Za)
        d = np.linalg.norm(Za[:, None] - (Zb if kind == "views" else Za)[None], axis=2)
        exponent = {"not squared": -t * d, "sign": t * d**2, "t": -(d**2)}.get(kind, -t * d**2)
        pairs = exponent.ravel() if kind in ("self", "views") else exponent[~np.eye(n, dtype=bool)]
        gap = np.linalg.norm(Za - Zb, axis=1)
        align = {"not squared": gap.mean(), "cosine": (Za * Zb).sum(axis=1).mean(), "entries": ((Za - Zb) ** 2).mean(),
                 "sum": (gap**2).sum()}.get(kind, (gap**2).mean())
        uniform = logsumexp(pairs) - np.log(len(pairs))
        if kind == "mean of log":
            uniform = pairs.mean()
        if kind == "no log":
            uniform = np.exp(uniform)
        if kind == "log of sum":
            uniform = logsumexp(pairs)
        if kind == "both views":
            uniform = geometry.uniformity(np.concatenate([Za, Zb]), t)
        return align, uniform

    return run


def _spread_cases():
    found = []
    for k, (n, d, t) in enumerate(((4, 3, 2.0), (6, 5, 2.0), (5, 4, 0.7))):
        rng = np.random.default_rng([61, k])
        a = rng.standard_normal((n, d))
        b = a + 0.5 * rng.standard_normal((n, d))
        found.append(Case(f"{n} pairs, t = {t}", (normalize(a)[0], normalize(b)[0], t)))
    a, b, _ = found[1].arguments
    return [*found, Case("t = 4000", (a, b, 4000.0), hint="Take the largest exponent out of the sum first.")]


SPREAD = Key(
    ("alignment", "uniformity"),
    _spread_right,
    _spread_cases,
    (
        Slip("the distance is not squared.", _spread_slip("not squared")),
        Slip("this is the mean cosine; asked is the mean squared distance.", _spread_slip("cosine"), ("alignment",)),
        Slip("the mean runs over all coordinates; a pair's squared distance is their sum.", _spread_slip("entries"),
             ("alignment",)),
        Slip("the factor 1/N is missing: a mean over pairs.", _spread_slip("sum"), ("alignment",)),
        Slip("the N pairs of a row with itself are counted; they are at distance 0 whatever the encoder does.",
             _spread_slip("self"), ("uniformity",)),
        Slip("the pairs are of one view, Za; here rows of Za meet rows of Zb.", _spread_slip("views"), ("uniformity",)),
        Slip("both views are pooled into one cloud; asked is the spread of Za.", _spread_slip("both views"),
             ("uniformity",)),
        Slip("logarithm and mean are exchanged: the logarithm comes last.", _spread_slip("mean of log"),
             ("uniformity",)),
        Slip("the logarithm is missing.", _spread_slip("no log"), ("uniformity",)),
        Slip("a sum over pairs where a mean is asked for.", _spread_slip("log of sum"), ("uniformity",)),
        Slip("the exponent has the wrong sign: near pairs must weigh most.", _spread_slip("sign"), ("uniformity",)),
        Slip("t is not used.", _spread_slip("t"), ("uniformity",)),
    ),
    advice="Take four points on a circle and do it with a pencil.",
)


# ---- effective_rank -------------------------------------------------------------------------------------------------


def _rank_slip(kind):
    def run(X):
        unit = X if kind == "raw" else normalize(X)[0]
        s = np.linalg.svd(unit - unit.mean(axis=0) if kind == "centred" else unit, compute_uv=False)
        s = s[s > 1e-12 * s[0]]
        weights = s if kind == "not squared" else s**2
        if kind == "share of top":
            return weights.sum() / weights.max()
        shares = weights / weights.sum()
        entropy = -(shares * np.log(shares)).sum()
        return {"entropy": entropy, "bits": np.exp(entropy / np.log(2)), "sign": np.exp(-entropy),
                "participation": 1 / (shares**2).sum()}.get(kind, np.exp(entropy))

    return run


def _rank_cases():
    found = []
    for k, (n, d) in enumerate(((8, 4), (5, 6), (20, 3))):
        rng = np.random.default_rng([62, k])
        cloud = rng.standard_normal((n, d)) * np.linspace(0.5, 3, d) + 1
        found.append(Case(f"{n} rows of {d}", (cloud,)))
    flat = np.random.default_rng(63).standard_normal((6, 2)) @ np.array([[1.0, 0, 0, 0, 0], [0, 1.0, 0, 0, 0]])
    return [*found, Case("rows in a plane", (flat,), hint="A share of 0 adds nothing to an entropy; 0 log 0 is nan.")]


RANK = Key(
    ("rank",),
    geometry.effective_rank,
    _rank_cases,
    (
        Slip("the shares are those of the singular values; asked are those of their squares, the energy.",
             _rank_slip("not squared")),
        Slip("the rows are not scaled to length 1 first.", _rank_slip("raw")),
        Slip("the mean row is taken away; asked is the rank of the cloud as it is.", _rank_slip("centred")),
        Slip("this is the entropy; its exponential counts directions.", _rank_slip("entropy")),
        Slip("the entropy is in bits, its exponential is taken with e: use one base.", _rank_slip("bits")),
        Slip("the entropy has the wrong sign.", _rank_slip("sign")),
        Slip("this is the inverse sum of squared shares, another way to count; asked is the entropy.",
             _rank_slip("participation")),
        Slip("this is the total over the largest; asked is the exponential of an entropy.", _rank_slip("share of top")),
    ),
    advice="Two orthogonal rows of length 1 have rank 2, three equal rows have rank 1.",
)


# ---- spearman_rank --------------------------------------------------------------------------------------------------


def _spearman_slip(kind):
    def run(a, b):
        if kind == "pearson":
            return pearsonr(a, b).statistic
        method = kind if kind in ("ordinal", "min", "max", "dense") else "average"
        first, second = rankdata(a, method), rankdata(b, method)
        if kind == "formula":
            n = len(a)
            return 1 - 6 * ((first - second) ** 2).sum() / (n * (n**2 - 1))
        if kind == "argsort":
            first, second = np.argsort(a), np.argsort(b)
        if kind == "one side":
            second = b
        return pearsonr(first, second).statistic

    return run


def _spearman_cases():
    found = []
    for k, n in enumerate((7, 12)):
        rng = np.random.default_rng([65, k])
        a = rng.standard_normal(n)
        found.append(Case(f"{n} pairs without ties", (a, np.exp(a + rng.standard_normal(n)))))
    a = np.array([0.1, 0.4, 0.4, 0.2, 0.9, 0.4, 0.7, 0.1])
    b = np.array([0.0, 2.0, 3.0, 2.0, 5.0, 4.0, 2.0, 1.0])
    return [*found, Case("ties on both sides", (a, b), hint="Which rank does each of several equal values get?")]


SPEARMAN = Key(
    ("correlation",),
    spearman,
    _spearman_cases,
    (
        Slip("this is Pearson's correlation of the values; the values must become ranks first.",
             _spearman_slip("pearson")),
        Slip("argsort gives the order (who is k-th), not the ranks (which place has i).", _spearman_slip("argsort")),
        Slip("only one of the two lists is ranked.", _spearman_slip("one side")),
        Slip("equal values get different ranks, by their place in the list; they share the mean of their ranks.",
             _spearman_slip("ordinal")),
        Slip("equal values get the lowest of their ranks; they share the mean of them.", _spearman_slip("min")),
        Slip("equal values get the highest of their ranks; they share the mean of them.", _spearman_slip("max")),
        Slip("after equal values the count goes on without a gap; they share the mean of the places they take.",
             _spearman_slip("dense")),
        Slip("the formula with squared rank differences holds only without ties.", _spearman_slip("formula")),
    ),
    advice="Rank five numbers with a pencil, two of them equal.",
)

KEYS = {
    "word_overlap": OVERLAP,
    "alignment_uniformity": SPREAD,
    "effective_rank": RANK,
    "spearman_rank": SPEARMAN,
}
