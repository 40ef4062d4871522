"""The encoder of chapter 14 and its training: frozen word vectors, averaged over a window, then one linear map.

    x = mean of the vectors of the window's known words        (D,), frozen
    h = x W + b,  W = I and b = 0 at the start                 so step 0 is the plain average
    loss = InfoNCE of the rows h of two random windows of each of B sections, the same section twice being no negative

Backward: only W and b move, so the chain ends at `linear`: dW = X^T dH, db = sum of the rows of dH.
"""

from dataclasses import dataclass

import numpy as np
from section_corpus import VIEW, split_sections, word_vectors

from nano_simcse.evaluation import gold_ranks
from nano_simcse.layers import linear, normalize
from nano_simcse.losses import info_nce
from nano_simcse.optim import Adam
from nano_simcse.parameters import Parameters


class WindowAverages:
    """Averages of any windows of some texts, two look-ups each: prefix sums of vectors and of known words.

    texts: lists of words; vectors: WordVectors, or any object with `index` and `vectors`. float64.
    """

    def __init__(self, texts, vectors, view):
        self.view, self.lengths = view, np.array([len(t) for t in texts])
        ids = np.array([vectors.index.get(w, -1) for t in texts for w in t])
        rows = np.where((ids >= 0)[:, None], vectors.vectors[ids].astype(np.float64), 0.0)
        self.sums = np.concatenate([np.zeros((1, rows.shape[1])), rows.cumsum(axis=0)])
        self.known = np.concatenate([[0], (ids >= 0).cumsum()])
        self.first = self.lengths.cumsum() - self.lengths

    def at(self, text, start):
        """(n, D) averages of `view` words from word `start` (n,) of text `text` (n,) on."""
        low = self.first[text] + start
        high = low + self.view
        return (self.sums[high] - self.sums[low]) / (self.known[high] - self.known[low])[:, None]

    def anywhere(self, text, rng):
        """A random start (n,) of a window in each of the texts (n,)."""
        return rng.integers(self.lengths[text] - self.view + 1)

    def ends(self):
        """Averages of the first and of the last window of every text."""
        every = np.arange(len(self.lengths))
        return self.at(every, np.zeros_like(every)), self.at(every, self.lengths - self.view)


def identity_head(width):
    """W = I, b = 0."""
    head = Parameters({"weight": (width, width), "bias": (width,)}, dtype=np.float64)
    head["weight"] = np.eye(width)
    return head


def apply(head, x):
    """Rows (n, D) before normalisation."""
    return x @ head["weight"] + head["bias"]


def section_ranks(head, windows):
    """Rank (n,) of each text's last window among all last windows, asked with its first; ties count against it."""
    first, last = (normalize(apply(head, x))[0] for x in windows.ends())
    return gold_ranks(first @ last.T, np.arange(len(first)), tolerance=1e-12)


def head_loss(head, first, second, picked, temperature):
    """(loss, backward) for averages first, second (B, D) of the sections picked (B,); backward() -> Parameters."""
    n = len(picked)
    repeated = (picked[:, None] == picked) & ~np.eye(n, dtype=bool)
    h, linear_back = linear(np.concatenate([first, second]), head["weight"], head["bias"])
    loss, loss_back = info_nce(h[:n], h[n:], temperature, exclude=repeated)

    def backward():
        gradients = head.zeros_like()
        _, gradients["weight"], gradients["bias"] = linear_back(np.concatenate(loss_back()))
        return gradients

    return loss, backward


@dataclass(frozen=True)
class HeadRun:
    """A trained head, the loss of each step, and the negatives a row had on average."""

    head: Parameters
    losses: np.ndarray
    negatives: float


def train_head(windows, batch, steps, seed, temperature=0.1, lr=1e-3, apart=False):
    """Adam on random crops of random sections. apart: the two windows of a pair never overlap."""
    rng = np.random.default_rng([seed, batch])
    head = identity_head(windows.sums.shape[1])
    adam, losses, negatives = Adam(head), [], []
    for _ in range(steps):
        picked = rng.integers(len(windows.lengths), size=batch)
        places = _apart(windows, picked, rng) if apart else [windows.anywhere(picked, rng) for _ in range(2)]
        first, second = (windows.at(picked, place) for place in places)
        loss, backward = head_loss(head, first, second, picked, temperature)
        losses.append(float(loss))
        negatives.append((picked[:, None] != picked).sum() / batch)
        adam.step(backward(), lr)
    return HeadRun(head, np.array(losses), float(np.mean(negatives)))


def _apart(windows, picked, rng):
    """Starts of two windows of each picked section that have no place in common, in random order."""
    spare = windows.lengths[picked] - 2 * windows.view  # words that lie in neither window
    low, high = np.sort(rng.integers(spare + 1, size=(2, len(picked))), axis=0)
    swap = rng.random(len(picked)) < 0.5
    high = high + windows.view
    return np.where(swap, high, low), np.where(swap, low, high)


def seen_and_unseen(texts, vectors, seed, view=VIEW, batch=64, steps=600, lr=3e-3, apart=False):
    """The same sections, trained on and not: (3, 2), rows averaged / unseen / seen, recall@1 (percent), mean 1/rank.

    The sections are halved at random and a head is trained on each half. Candidates are always those of the own half.
    apart: trained on windows that never overlap.
    """
    order = np.random.default_rng(seed).permutation(len(texts))
    halves = order[: len(order) // 2 * 2].reshape(2, -1)
    windows = [WindowAverages([texts[i] for i in half], vectors, view) for half in halves]
    heads = [train_head(w, batch, steps, seed, lr=lr, apart=apart).head for w in windows]
    start = identity_head(vectors.vectors.shape[1])
    asked = [(start, start), heads[::-1], heads]
    ranks = [np.concatenate([section_ranks(h, w) for h, w in zip(pair, windows, strict=True)]) for pair in asked]
    return np.array([[100 * np.mean(r == 1), np.mean(1 / r)] for r in ranks])


def gains_over_splits(splits, vector_steps, setting, batch=64, seeds=(0, 1, 2)):
    """Mean 1/rank gained over the average, (splits, 2): held-out, training; word vectors and heads anew per split."""
    gains = []
    for split in splits:
        sections, vectors = split_sections(split), word_vectors(0, vector_steps, split)
        train, test = (WindowAverages(texts, vectors, VIEW) for texts in (sections.train, sections.held_out))
        start = identity_head(vectors.vectors.shape[1])
        heads = [train_head(train, batch, seed=seed, **setting).head for seed in seeds]
        gains.append([np.mean([np.mean(1 / section_ranks(h, w)) for h in heads]) - np.mean(1 / section_ranks(start, w))
                      for w in (test, train)])
    return np.array(gains)
