"""Exercise 7 (chapter 3): experiment: train without dropout."""

from chapters.exercises.setting import fresh_encoder, paraphrases, train_on_twins
from nano_simcse.geometry import alignment, uniformity


def dropout_off(seed):
    """Returns (table, verdict)."""
    table = []
    for mode in ("independent", "off"):
        encoder = fresh_encoder(seed)
        train_on_twins(encoder, seed, mode=mode)
        left, right = (encoder.encode(side) for side in paraphrases())
        table.append([alignment(left, right), uniformity(left)])
    # Uniformity is far from 0: the quiz still pushes strangers apart. What is lost is the agreement of paraphrases.
    return table, "worse alignment"
