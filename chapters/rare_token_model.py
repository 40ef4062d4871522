"""The smallest softmax language model: contexts and tokens with free vectors, trained together."""

import numpy as np

from nano_simcse.geometry import mean_pair_cosine


def language_model(zipf, steps=400, tokens=100, width=16, seed=0, every=40):
    """Where the rows of rare tokens go, and the hidden states with them.

    Half of each context's probability goes to one token of its own, half to the unigram law 1 / rank^zipf; zipf = 0 is
    the control: every token equally often. Scores z = hidden . row, loss the exact cross-entropy, plain gradient steps.
    Returns (steps / every + 1, 3): mean pair cosine of the rows of the rarer half, mean pair cosine of the hidden
    states, and the cosine between the means of the two.
    """
    rng = np.random.default_rng(seed)
    unigram = 1 / np.arange(1, tokens + 1) ** zipf
    own = np.arange(tokens) // 4 if zipf else np.arange(tokens)
    wanted = 0.5 * unigram / unigram.sum() + 0.5 * np.eye(tokens)[own]
    hidden, rows = 0.3 * rng.standard_normal((2, tokens, width))
    path = []
    for step in range(steps + 1):
        if step % every == 0:
            rare, mean = rows[tokens // 2 :], hidden.mean(axis=0)
            direction = rare.mean(axis=0)
            cosine = direction @ mean / np.linalg.norm(direction) / np.linalg.norm(mean)
            path.append([mean_pair_cosine(rare), mean_pair_cosine(hidden), cosine])
        z = hidden @ rows.T
        p = np.exp(z - z.max(axis=1, keepdims=True))
        dz = p / p.sum(axis=1, keepdims=True) - wanted
        hidden, rows = hidden - 0.1 * dz @ rows, rows - 0.1 * dz.T @ hidden
    return np.array(path)
