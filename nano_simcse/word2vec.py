"""Word vectors from neighbours: count, pair, draw, train.

documents -> `count_words` (which words, how often) -> `subsample` (fewer of the frequent ones) -> `window_pairs` (which
words stand near each other) -> `noise_probabilities` (where false neighbours are drawn) -> `losses.skip_gram` -> two
tables, updated by Adam.

Kept from Mikolov et al. (arXiv 1301.3781, 1310.4546): two tables, the contexts starting at zero, the noise exponent
3/4, subsampling, a rate that falls linearly. Left out: windows of random width (every distance up to `window` counts
alike). Done otherwise: Adam instead of plain SGD, one draw of the subsample for the whole training, and a false
neighbour that happens to be the real one stays in. The encoder of the package begins with vectors that are counted, not
trained, from the same pairs and noise (ppmi.py).
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np
from tqdm import tqdm

from .backend import to_device, to_host
from .errors import InputError
from .inputs import members, require_count, require_number
from .layers import embedding
from .losses.skip_gram import skip_gram
from .optim import Adam, learning_rate
from .parameters import Parameters
from .progress import hidden
from .word_vectors import WordVectors

_WORD = re.compile(r"[^\W_]+(?:[-'_][^\W_]+)*")


def split_words(text: str) -> list[str]:
    """Words of a text in order, lower-cased: runs of letters and digits, inner hyphens and apostrophes kept."""
    return _WORD.findall(text.lower())


def count_words(documents: Sequence[Sequence[str]], min_count: int = 5) -> tuple[list[str], np.ndarray]:
    """(words, counts (V,)) of the words that occur at least `min_count` times, most frequent first, ties by alphabet.

    Raises InputError when no word does.
    """
    found = Counter(chain.from_iterable(documents))
    kept = sorted((w for w, n in found.items() if n >= min_count), key=lambda w: (-found[w], w))
    if not kept:
        raise InputError(f"no word occurs {min_count} times in {len(documents)} documents")
    return kept, np.array([found[w] for w in kept])


def subsample(documents: Sequence[Sequence[str]], threshold: float, rng: np.random.Generator) -> list[list[str]]:
    """The documents with frequent words thinned: each occurrence of w is kept with probability min(1, sqrt(t / f_w)).

    threshold t > 0; f_w is the share of w among all words of the documents. What is left stands closer together, so
    windows reach further. Raises InputError for a threshold that is not above 0. Source: arXiv 1310.4546, equation 5.
    """
    if not threshold > 0:
        raise InputError(f"the subsampling threshold is {threshold}; expected a number above 0")
    found = Counter(chain.from_iterable(documents))
    total = sum(found.values())
    keep = {word: math.sqrt(threshold * total / n) for word, n in found.items()}
    return [[word for word, u in zip(d, rng.random(len(d)), strict=True) if u < keep[word]] for d in documents]


def window_pairs(documents: Sequence[Sequence[int]], window: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs (centre, context) of ids that stand at most `window` places apart in one document.

    A document of n ids gives sum over d = 1 ... window of 2 max(0, n - d) pairs: each pair in both roles. Returns two
    int32 arrays (P,). Raises InputError for a window below 1.
    """
    if window < 1:
        raise InputError(f"window is {window}; expected at least 1")
    lengths = [len(d) for d in documents]
    ids = np.fromiter(chain.from_iterable(documents), np.int32, sum(lengths))
    owner = np.repeat(np.arange(len(lengths)), lengths)
    centres, contexts = [], []
    for distance in range(1, window + 1):
        together = owner[distance:] == owner[:-distance]
        left, right = ids[:-distance][together], ids[distance:][together]
        centres += [left, right]
        contexts += [right, left]
    return np.concatenate(centres), np.concatenate(contexts)


def noise_probabilities(counts, power: float = 0.75) -> np.ndarray:
    """q_w = count_w^power / sum: float64 (V,). power 1 draws words as they occur, 0 all alike.

    >>> noise_probabilities([1, 16, 81]) * 36
    array([ 1.,  8., 27.])
    """
    weights = np.asarray(counts, np.float64) ** power
    return weights / weights.sum()


def train_word2vec(
    documents: Sequence[Sequence[str]],
    *,
    width: int = 64,
    window: int = 4,
    negatives: int = 5,
    steps: int = 4000,
    batch_size: int = 1024,
    lr: float = 3e-3,
    schedule: str = "linear",
    min_count: int = 5,
    power: float = 0.75,
    threshold: float | None = None,
    seed: int = 0,
    device: str = "cpu",
    progress: bool | None = None,
) -> WordVectors:
    """Skip-gram vectors of the words of `documents`.

    documents          lists of words; a pair never crosses from one into the next, and words rarer than `min_count`
                       are taken out before distances are counted; an iterator is read once
    threshold          of `subsample` (1e-3 is usual for a small text), or None for every occurrence
    width              D of both tables; centres start at N(0, 0.1^2), contexts at 0, so the first loss is (1 + k) log 2
    negatives, power   k false contexts a pair, drawn from count^power
    steps, batch_size  pairs are drawn uniformly, with replacement; Adam, rate `lr` under `schedule`
    device             "cpu" or "cuda:i" (`backend.resolve_device`), where the tables are trained
    progress           True for a bar, False for none, None for a bar on a terminal
    Returns WordVectors in float32 on the host, `losses` (steps,) included. The same seed gives the same bits on a CPU.
    Raises InputError for a document that is not a list of words, no word frequent enough, no pair, or a number out of
    range.
    """
    counted = {"width": width, "window": window, "negatives": negatives, "steps": steps, "batch_size": batch_size}
    for name, value in counted.items():
        require_count(name, value)
    require_number("lr", lr, positive=True)
    require_number("power", power)
    documents = [
        members(f"document {i}", document, "a list of words")
        for i, document in enumerate(members("documents", documents, "a list of lists of words"))
    ]
    words, counts = count_words(documents, min_count)
    rng, row = np.random.default_rng(seed), {word: i for i, word in enumerate(words)}
    if threshold is not None:
        documents = subsample(documents, threshold, rng)
    centres, contexts = window_pairs([[row[w] for w in d if w in row] for d in documents], window)
    if not len(centres):
        raise InputError("no two words stand in one document, so there is no pair to learn from")
    cumulative = np.cumsum(noise_probabilities(counts, power))
    cumulative[-1] = 1.0

    start = Parameters({"centres": (len(words), width), "contexts": (len(words), width)})
    start["centres"] = 0.1 * rng.standard_normal((len(words), width))
    tables = Parameters(start.shapes, to_device(start.flat, device))
    gradients, adam, losses = tables.zeros_like(), Adam(tables), []
    bar = tqdm(range(steps), desc="word2vec", unit="step", disable=hidden(progress))
    for step in bar:
        drawn = rng.integers(len(centres), size=batch_size)
        false = np.searchsorted(cumulative, rng.random((batch_size, negatives)), side="right")
        losses.append(_gradients(tables, gradients, centres[drawn], contexts[drawn], false, device))
        adam.step(gradients, learning_rate(lr, step, steps, schedule=schedule))
    vectors, others = (to_host(tables[name]) for name in tables)
    return WordVectors(words, counts, vectors, others, np.array([float(loss) for loss in losses]))


def _gradients(tables, gradients, centres, contexts, false, device):
    """Loss of one batch of ids; `gradients` is overwritten."""
    v, centre_back = embedding(tables["centres"], to_device(centres, device))
    u, context_back = embedding(tables["contexts"], to_device(contexts, device))
    n, false_back = embedding(tables["contexts"], to_device(false.reshape(-1), device))
    loss, backward = skip_gram(v, u, n.reshape(*false.shape, -1))
    dv, du, dn = backward()
    gradients.flat[...] = 0
    centre_back(dv, into=gradients["centres"])
    context_back(du, into=gradients["contexts"])
    false_back(dn.reshape(n.shape), into=gradients["contexts"])
    return loss
