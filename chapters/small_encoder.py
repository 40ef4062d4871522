"""The package's encoder on a word list: small enough that a chapter can train it in a second.

One token per word, [CLS] in front, [SEP] behind. Vectors are the mean over the tokens of the last layer, or the [CLS]
row. Two views of a batch are 2 N rows of ONE forward pass, whose mask labels say which row is which view.
"""

import numpy as np

from nano_simcse.architecture import INITIAL_STD
from nano_simcse.data.batches import pack
from nano_simcse.encoder import EncoderConfig, encoder_forward, init_parameters
from nano_simcse.evaluation import spearman
from nano_simcse.layers.normalize import normalize
from nano_simcse.layers.pooling import pool
from nano_simcse.losses import info_nce
from nano_simcse.masks import Masks, row_labels
from nano_simcse.optim import Adam

PAD, CLS, SEP, MASK, UNKNOWN = range(5)
TEMPERATURE = 0.05


def view_labels(sentences, views=2):
    """Mask labels of `views` stacked copies of a batch: all rows of view 0, then all rows of view 1, ..."""
    return row_labels(np.tile(np.arange(sentences), views), np.repeat(np.arange(views), sentences))


class SmallEncoder:
    """A transformer over a word list. words: the vocabulary; scale: standard deviation of the weights,
    1 / sqrt(width) unless given; the rest is EncoderConfig's."""

    def __init__(self, words, layers=1, width=32, heads=2, seed=0, pooling="mean", dtype=np.float32, scale=None):
        self.ids = {word: number for number, word in enumerate(words, UNKNOWN + 1)}
        self.config = EncoderConfig(UNKNOWN + 1 + len(words), layers, width, heads, max_positions=32)
        self.params = init_parameters(self.config, seed, dtype)
        self.pooling = pooling
        scale = 1 / np.sqrt(width) if scale is None else scale  # the package draws with 0.02, made for width 768
        for weight in self.params.values():
            if weight.ndim == 2:
                weight *= scale / INITIAL_STD

    def rows(self, sentences):
        """Token ids of each sentence."""
        return [
            np.array([CLS, *(self.ids.get(word, UNKNOWN) for word in s.split()), SEP], np.int32) for s in sentences
        ]

    def forward(self, rows, masks=None, labels=None):
        """Vectors (B, D) of token rows and backward(dvectors, into) -> gradients. masks None: no dropout."""
        batch = pack(rows, labels)
        hidden, hidden_back = encoder_forward(self.params, self.config, batch, masks)
        vectors, pool_back = pool(hidden, batch, self.pooling)
        return vectors, lambda dvectors, into=None: hidden_back(pool_back(dvectors), into)

    def encode(self, sentences):
        """Vectors of sentences, dropout off."""
        return self.forward(self.rows(sentences))[0]

    def score(self, pairs):
        """100 x Spearman correlation of cosines with the gold scores of (sentence, sentence, score) triples."""
        left, right, gold = zip(*pairs, strict=True)
        cosines = (normalize(self.encode(left))[0] * normalize(self.encode(right))[0]).sum(axis=1)
        return 100 * spearman(np.round(cosines, 6), gold)


def contrastive_step(encoder, views, masks, other=None, labels=None):
    """Loss and gradients of one batch. views: (rows of view 0, rows of view 1), N token rows each.

    other: a second encoder for view 1 (its gradients come back too). labels: mask labels of the 2 N rows, one per
    view and sentence unless given. Returns loss, gradients, gradients of other.
    """
    first, second = views
    n = len(first)
    labels = view_labels(n) if labels is None else labels
    if other is None:
        h, back = encoder.forward([*first, *second], masks, labels)  # one pass over 2 N rows
        loss, loss_back = info_nce(h[:n], h[n:], TEMPERATURE)
        return loss, back(np.concatenate(loss_back())), None
    h, back = encoder.forward(first, masks, labels[:n])
    k, other_back = other.forward(second, masks, labels[n:])
    loss, loss_back = info_nce(h, k, TEMPERATURE)
    dh, dk = loss_back()
    return loss, back(dh), other_back(dk)


def train(encoder, draw, steps, rate=0.1, mode="independent", seed=0, lr=1e-3, other=None, labels=None):
    """Train in place with Adam. draw(step) -> (rows of view 0, rows of view 1); the rest as in contrastive_step.

    Returns the losses (steps,).
    """
    adam = Adam(encoder.params)
    other_adam = None if other is None else Adam(other.params)
    losses = []
    for step in range(steps):
        loss, gradients, other_gradients = contrastive_step(
            encoder, draw(step), Masks(seed, step, rate, mode), other, labels
        )
        adam.step(gradients, lr)
        if other is not None:
            other_adam.step(other_gradients, lr)
        losses.append(float(loss))
    return np.array(losses)
