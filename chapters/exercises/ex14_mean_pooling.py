"""Exercise 14 (chapter 8): experiment: read the mean of the tokens or the first one.

A sentence vector can be the last layer's row of [CLS] or the mean over all tokens. Which is better at this size (one
layer, 32 units, 40 steps)? Write down your guess, then measure.

For "cls" and for "mean": train a fresh encoder of that pooling on dropout twins, and score it.

    scores   two numbers, cls first: encoder.score(pairs()), 100 x Spearman correlation with graded similarity
    verdict  "cls" or "mean", whichever is better

setting.py has fresh_encoder(seed, pooling), train_on_twins(encoder, seed) and pairs(). Takes about two seconds.
"""

from chapters.exercises.setting import fresh_encoder, pairs, train_on_twins  # noqa: F401


def mean_pooling(seed):
    """Returns (scores, verdict)."""
    raise NotImplementedError
