"""Exercise 14 (chapter 8): experiment: read the mean of the tokens or the first one."""

from chapters.exercises.setting import fresh_encoder, pairs, train_on_twins


def mean_pooling(seed):
    """Returns (scores, verdict)."""
    scores = []
    for pooling in ("cls", "mean"):
        encoder = fresh_encoder(seed, pooling)
        train_on_twins(encoder, seed)
        scores.append(encoder.score(pairs()))
    return scores, "mean" if scores[1] > scores[0] else "cls"
