"""Exercise 16 (chapter 9): experiment: more data against more epochs."""

import numpy as np

from chapters.exercises.setting import world_encoder


def data_or_epochs(worlds):
    """worlds: a tuple of seeds. Returns (scores, verdict)."""
    scores = []
    for sentences, steps in ((48, 60), (48, 240), (768, 240)):
        encoders = [world_encoder(world, sentences) for world in worlds]
        scores.append(np.mean([encoder.run(steps).score() for encoder in encoders]))
    return scores, "data" if scores[2] > scores[1] else "epochs"
