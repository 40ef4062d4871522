"""An encoder without word order: a sentence is the mean of its word vectors, the table (V, D) is all it has to learn.

h = x T with x (n, V) the share of each word in the sentence, so dL/dT = x^T dh. Unknown words are left out.
"""

import numpy as np

from nano_simcse.optim import Adam
from nano_simcse.parameters import Parameters


class BagEncoder:
    """words: the vocabulary; width: D. The table starts standard normal; Adam with a constant rate."""

    def __init__(self, words, width, seed=0, lr=0.02):
        self.ids = {word: i for i, word in enumerate(words)}
        self.parameters = Parameters({"table": (len(self.ids), width)}, dtype=np.float64)
        self.parameters["table"] = np.random.default_rng([seed, 3]).standard_normal((len(self.ids), width))
        self.adam, self.lr = Adam(self.parameters), lr

    @property
    def table(self):
        return self.parameters["table"]

    def bags(self, sentences):
        """(n, V): how often each word stands in a sentence, over the number of its known words."""
        x = np.zeros((len(sentences), len(self.ids)))
        for row, sentence in zip(x, sentences, strict=True):
            for word in sentence.split():
                if word in self.ids:
                    row[self.ids[word]] += 1
        return x / np.maximum(x.sum(axis=1, keepdims=True), 1)

    def encode(self, sentences):
        """Embeddings (n, D), not normalised."""
        return self.bags(sentences) @ self.table

    def step(self, bags, gradients):
        """One Adam update from pairs of bags (n, V) and dL/dh (n, D)."""
        total = self.parameters.zeros_like()
        for x, dh in zip(bags, gradients, strict=True):
            total["table"] += x.T @ dh
        self.adam.step(total, self.lr)
