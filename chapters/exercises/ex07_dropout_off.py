"""Exercise 7 (chapter 3): experiment: train without dropout.

Without dropout the two views of a sentence are one and the same vector. Does the encoder collapse? Write down your
guess, then measure.

Train two fresh encoders with the same seed, one on twins with masks of their own (mode "independent"), one with mode
"off". Of each, on the held-out paraphrases, dropout off: alignment of the two lists, uniformity of the first.

    table    2 x 2: rows "dropout on", "dropout off"; columns alignment, uniformity (both: lower is better)
    verdict  what switching dropout off did: "collapse", "worse alignment" or "no difference"

setting.py has fresh_encoder(seed), train_on_twins(encoder, seed, mode=...) and paraphrases(); encoder.encode(sentences)
gives vectors. Takes about two seconds.
"""

from chapters.exercises.setting import fresh_encoder, paraphrases, train_on_twins  # noqa: F401
from nano_simcse.geometry import alignment, uniformity  # noqa: F401


def dropout_off(seed):
    """Returns (table, verdict)."""
    raise NotImplementedError
