"""Exercise 16 (chapter 9): experiment: more data against more epochs.

You can afford four times as many steps. Spend them on the sentences you have, or on new ones? Write down your guess,
then measure, in the random worlds of chapter 3, where a run takes a moment and the true similarity is known.

    run 1    48 sentences, 60 steps
    run 2    48 sentences, 240 steps      more epochs
    run 3    768 sentences, 240 steps     more data, the same number of steps

    scores   three numbers: each run's score, averaged over the worlds
    verdict  "data" or "epochs", whichever helps more

setting.py has world_encoder(world, sentences), which has run(steps) and score(). Takes about two seconds.
"""

import numpy as np  # noqa: F401

from chapters.exercises.setting import world_encoder  # noqa: F401


def data_or_epochs(worlds):
    """worlds: a tuple of seeds. Returns (scores, verdict)."""
    raise NotImplementedError
