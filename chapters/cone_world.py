"""Four encoders of one small world: as it starts, centred, whitened, and after contrastive training.

The world is that of trails.py behind a large common offset, which is what an anisotropic language model gives: every
pair of sentences looks alike before training.
"""

import numpy as np
from trails import Trail

from nano_simcse.evaluation import spearman
from nano_simcse.geometry import alignment, effective_rank, mean_pair_cosine, spectrum_decay, uniformity, unit_rows

PRESETS = ("raw cone", "+ centring", "+ whitening", "contrastive")
MEASURES = ("mean cos", "align", "uniform", "eff. rank", "Spearman")


def presets(whitening, seed=0, offset=5.0, junk=1.0, steps=600):
    """name -> function from sentence vectors (n, 86) to embeddings (n, 16), for the four PRESETS; and the world.

    whitening(rows) -> (mean (D,), matrix (D, k)), fitted on the untrained embeddings of the training sentences.
    """
    trail = Trail("independent masks", seed=seed, every=steps + 1, offset=offset, junk=junk)
    world, start = trail.world, trail.parameters["weight"].copy()
    mean, matrix = whitening(world.train @ start)
    trained = trail.run(steps).parameters["weight"]
    maps = (
        lambda x: x @ start,
        lambda x: x @ start - mean,
        lambda x: (x @ start - mean) @ matrix,
        lambda x: x @ trained,
    )
    return dict(zip(PRESETS, maps, strict=True)), world


def measure(encode, world):
    """MEASURES of one encoder on the held-out sentences of a world."""
    left, right = encode(world.left), encode(world.right)
    first, second = encode(world.first), encode(world.second)
    cosines = (first * second).sum(axis=1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    return [
        mean_pair_cosine(left),
        alignment(left, right),
        uniformity(left),
        effective_rank(left),
        spearman(cosines, world.gold),
    ]


def study(whitening, junk, seeds):
    """Mean over seeds of MEASURES, one row per preset."""
    runs = []
    for seed in seeds:
        encoders, world = presets(whitening, seed=seed, junk=junk)
        runs.append([measure(encode, world) for encode in encoders.values()])
    return np.mean(runs, axis=0)


def picture_of(encoders, world, wordings=30, others=200):
    """What a figure of the four PRESETS needs.

    Three meanings 120 degrees apart in `wordings` wordings each, and other sentences, as unit vectors projected on the
    plane in which the three group means are largest. Returns arrays: groups (4, 3, wordings, 2), others (4, others, 2),
    spectra (4, 16): singular values of held-out unit rows over the largest; scores (4,): MEASURES' Spearman.
    """
    angles = np.deg2rad([0, 120, 240])
    meanings = np.sqrt(6) * np.column_stack([np.cos(angles), np.sin(angles), np.zeros((3, 4))])  # as long as others
    said = world.say(np.repeat(meanings, wordings, axis=0))
    groups, rest, spectra, scores = [], [], [], []
    for encode in encoders.values():
        rows = unit_rows(encode(said)).reshape(3, wordings, -1)
        plane = np.linalg.svd(rows.mean(axis=1))[2][:2]
        plane *= np.sign(plane @ rows.mean(axis=(0, 1)))[:, None]  # a singular vector has no sign of its own
        groups.append(rows @ plane.T)
        rest.append(unit_rows(encode(world.left[:others])) @ plane.T)
        spectra.append(spectrum_decay(encode(world.left)))
        scores.append(measure(encode, world)[-1])
    return {key: np.array(value) for key, value in zip(
        ("groups", "others", "spectra", "scores"), (groups, rest, spectra, scores), strict=True)}
