"""What a score leaves out: chance, probes, the masked-word auxiliary, other readings, and long passages."""

from dataclasses import replace

import numpy as np
from grammar import entailed, graded_pairs, random_frame, say, sentences, vocabulary
from scipy import integrate, stats
from small_encoder import CLS, MASK, PAD, SEP, TEMPERATURE, UNKNOWN, SmallEncoder, view_labels

from nano_simcse.data.batches import pack
from nano_simcse.encoder import encoder_forward, init_parameters
from nano_simcse.evaluation import recall_at_k, spearman, sts_scores
from nano_simcse.layers import normalize, pool
from nano_simcse.losses import info_nce
from nano_simcse.masks import Masks
from nano_simcse.optim import Adam
from nano_simcse.retrieval import LexicalIndex, lexical_words
from nano_simcse.training.mlm import hide_tokens, mlm_loss

# ---- chance in a score ----------------------------------------------------------------------------------------


def simulate(offset, level, noise=0.4, subsets=5, n=300, seed=0):
    """all and mean for a noisy model: gold levels spread by level, the model's scores by offset of their own."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(subsets), n)
    levels = np.linspace(-1, 1, subsets)[groups]
    gold = rng.standard_normal(len(groups)) + level * levels
    shift = offset * rng.permutation(np.linspace(-1, 1, subsets))[groups]
    scores = gold + noise * rng.standard_normal(len(groups)) + shift
    report = sts_scores(scores, gold, groups)
    return report["all"]["spearman"] / 100, report["mean"]["spearman"] / 100


def expected_best(k):
    """E max of k standard normal numbers: integral of x k phi(x) Phi(x)^(k-1)."""
    return integrate.quad(lambda x: x * k * stats.norm.pdf(x) * stats.norm.cdf(x) ** (k - 1), -8, 8)[0]


def optimism(k=62, pairs=1500, correlation=0.8, shared=0.9):
    """Points (x 100) by which the best of k dev scores exceeds the truth, when nothing but noise differs.

    Standard error of Spearman about (1 - r^2) sqrt(1 + r^2/2)/sqrt(n - 3); shared: the part of its variance that all
    checkpoints have in common, because they see the same pairs.
    """
    error = (1 - correlation**2) * np.sqrt(1 + correlation**2 / 2) / np.sqrt(pairs - 3)
    return 100 * error * np.sqrt(1 - shared) * expected_best(k)


# ---- a logistic probe ------------------------------------------------------------------------------------------


def probe_loss(w, x, y, ridge=0.0):
    """Logistic loss of labels y (n,) in {0, 1}, its gradient and Hessian in w (D + 1,); w[-1] is the intercept.

    L = sum_i log(1 + exp(-(2 y_i - 1) z_i)) + ridge/2 |w without intercept|^2,   z = [x 1] w
    """
    design = np.column_stack([x, np.ones(len(x))])
    z = design @ w
    p = 1 / (1 + np.exp(-z))
    penalty = ridge * np.append(np.ones(x.shape[1]), 0.0)
    loss = np.logaddexp(0, np.where(y, -z, z)).sum() + 0.5 * (penalty * w) @ w
    gradient = design.T @ (p - y) + penalty * w  # dL/dz = p - y
    hessian = (design * (p * (1 - p))[:, None]).T @ design + np.diag(penalty)
    return loss, gradient, hessian


def fit_probe(x, y, ridge=0.0, steps=60):
    """Weights (D + 1,) that minimise probe_loss, by damped Newton steps."""
    w = np.zeros(x.shape[1] + 1)
    loss, gradient, hessian = probe_loss(w, x, y, ridge)
    for _ in range(steps):
        move = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        size = 1.0
        while size > 1e-6:
            tried = probe_loss(w - size * move, x, y, ridge)
            if tried[0] <= loss:
                break
            size /= 2
        else:
            break
        w, (loss, gradient, hessian) = w - size * move, tried
    return w


def accuracy(w, x, y):
    """Share of right decisions."""
    return float(((x @ w[:-1] + w[-1] > 0) == y).mean())


# ---- masked words beside the contrastive loss ------------------------------------------------------------------

WORDS = vocabulary()
DEV = graded_pairs(300, seed=90)


def encoder_with(positions=32, mlm=False, seed=0, width=32, dtype=np.float32):
    """A SmallEncoder with another number of positions or with a masked-word head."""
    encoder = SmallEncoder(WORDS, width=width, seed=seed)
    encoder.config = replace(encoder.config, max_positions=positions, mlm=mlm)
    encoder.params = init_parameters(encoder.config, seed, dtype)
    for _, weight in encoder.params.items():
        if weight.ndim == 2:
            weight *= 1 / (0.02 * np.sqrt(width))
    return encoder


def train(weight=0.0, steps=150, seed=0, batch=24, lr=3e-3, positions=32):
    """Contrastive training on entailment pairs plus weight times the masked-word loss."""
    encoder = encoder_with(positions, mlm=True, seed=seed)
    rng = np.random.default_rng(seed)
    frames = [random_frame(rng) for _ in range(1500)]
    rows = [encoder.rows([say(f, rng) for f in frames]), encoder.rows([say(entailed(f, rng), rng) for f in frames])]
    adam = Adam(encoder.params)
    for step in range(steps):
        chosen = rng.choice(len(frames), batch, replace=False)
        views = [[view[i] for i in chosen] for view in rows]
        hidden = hide(encoder, views[0], rng) if weight else None
        adam.step(joint_step(encoder, views, Masks(seed, step, 0.1), weight, hidden)[2], lr)
    return encoder


def hide(encoder, rows, rng):
    """(batch with some words hidden, their places, the words) of token rows, labelled as a third view."""
    batch = pack(rows, view_labels(len(rows), 3)[-len(rows) :])
    ids, places, targets = hide_tokens(batch.ids, [PAD, CLS, SEP, UNKNOWN], MASK, encoder.config.vocab_size, rng)
    return replace(batch, ids=ids), places, targets


def joint_step(encoder, views, masks, weight, hidden=None):
    """(contrastive loss, masked-word loss, gradients of contrastive + weight times masked-word)."""
    n = len(views[0])
    h, back = encoder.forward([*views[0], *views[1]], masks, view_labels(n))
    contrastive, loss_back = info_nce(h[:n], h[n:], TEMPERATURE)
    gradients = back(np.concatenate(loss_back()))
    if hidden is None:
        return float(contrastive), 0.0, gradients
    batch, places, targets = hidden
    states, back = encoder_forward(encoder.params, encoder.config, batch, masks)
    masked, loss_back = mlm_loss(encoder.params, encoder.config, states[-1], places, targets)
    back(loss_back(weight, gradients), into=gradients)
    return float(contrastive), float(masked), gradients


def word_probe(encoder, words=("lady", "chef", "hound", "fiddle", "bike", "crate"), seed=5):
    """Accuracy (percent) of a ridge probe that reads from a frozen vector which of two synonyms stood there."""
    texts = sentences(3000, seed)
    plain = {"lady": "woman", "chef": "cook", "hound": "dog", "fiddle": "violin", "bike": "bicycle", "crate": "box"}
    scores = []
    for word in words:
        chosen = [t for t in texts if (word in t.split()) != (plain[word] in t.split())][:240]
        y = np.array([word in t.split() for t in chosen])
        x = normalize(encoder.encode(chosen).astype(np.float64))[0]
        half = len(x) // 2
        scores.append(accuracy(fit_probe(x[:half], y[:half], ridge=1e-2), x[half:], y[half:]))
    return 100 * float(np.mean(scores))


def token_probe(encoder, seed=6, ridge=1.0):
    """Accuracy (percent) of a linear probe that names a hidden word from the last state of its place.

    Least squares on one-hot targets, fitted on half of 1200 fresh texts and tested on the other half.
    """
    rng = np.random.default_rng(seed)
    batch = pack(encoder.rows(sentences(1200, seed)))
    special = [PAD, CLS, SEP, UNKNOWN, encoder.ids["the"]]
    ids, places, targets = hide_tokens(batch.ids, special, MASK, encoder.config.vocab_size, rng)
    hidden, _ = encoder_forward(encoder.params, encoder.config, replace(batch, ids=ids), grad=False)
    order = rng.permutation(len(places))
    x, y = hidden[-1][places[order]].astype(np.float64), targets[order]
    x = np.column_stack([x, np.ones(len(x))])
    half = len(x) // 2
    onehot = np.eye(encoder.config.vocab_size)[y[:half]]
    w = np.linalg.solve(x[:half].T @ x[:half] + ridge * np.eye(x.shape[1]), x[:half].T @ onehot)
    return 100 * float(((x[half:] @ w).argmax(axis=1) == y[half:]).mean())


def mlm_study(seeds=(0, 1, 2), weights=(0.0, 0.1, 1.0)):
    """{weight: (score on graded pairs, token probe, synonym probe)}, means over seeds."""
    results = {}
    for weight in weights:
        encoders = [train(weight, seed=seed) for seed in seeds]
        probes = [[e.score(DEV), token_probe(e), word_probe(e)] for e in encoders]
        results[weight] = np.mean(probes, axis=0)
    return results


# ---- a short question against long passages --------------------------------------------------------------------


def library(passages=60, length=5, seed=7):
    """(passages, questions, single sentences): question i repeats the meaning of one sentence of passage i in the
    plain words; single sentence i is that sentence as the passage has it."""
    rng = np.random.default_rng(seed)
    frames = [[random_frame(rng) for _ in range(length)] for _ in range(passages)]
    said = [[say(f, rng) for f in group] for group in frames]
    asked = rng.integers(0, length, passages)
    questions = [say(frames[i][asked[i]]) for i in range(passages)]
    return [" ".join(group) for group in said], questions, [said[i][asked[i]] for i in range(passages)]


def bm25(texts, query, k1=1.5, b=0.75):
    """BM25 of one query against every text, in the Lucene form, from nothing.

    sum over query words w of  log(1 + (n - n_w + 1/2)/(n_w + 1/2)) f / (f + k1 (1 - b + b |d| / mean |d|))
    """
    documents = [lexical_words(text) for text in texts]
    lengths = np.array([len(d) for d in documents])
    scores = np.zeros(len(texts))
    for word in lexical_words(query):
        f = np.array([d.count(word) for d in documents])
        holds = np.count_nonzero(f)
        if holds:
            rarity = np.log(1 + (len(texts) - holds + 0.5) / (holds + 0.5))
            scores += rarity * f / (f + k1 * (1 - b + b * lengths / lengths.mean()))
    return scores


def recalls(encoder, passages, questions, singles):
    """Recall at 1 in percent: rows dense and BM25, columns single sentences (symmetric) and passages (asymmetric)."""
    gold = np.arange(len(questions))
    q = normalize(encoder.encode(questions))[0]
    dense = [recall_at_k(q @ normalize(encoder.encode(texts))[0].T, gold) for texts in (singles, passages)]
    lexical = [recall_at_k(LexicalIndex(texts).score_matrix(questions), gold) for texts in (singles, passages)]
    return np.array([dense, lexical])


# ---- another reading -------------------------------------------------------------------------------------------


def pooling_score(encoder, pooling):
    """Score on the graded pairs under another pooling than the one of training."""
    left, right, gold = zip(*DEV, strict=True)
    batch = pack(encoder.rows([*left, *right]))
    hidden, _ = encoder_forward(encoder.params, encoder.config, batch, grad=False)
    x = normalize(pool(hidden, batch, pooling)[0])[0]
    return 100 * spearman(np.round((x[: len(gold)] * x[len(gold) :]).sum(axis=1), 6), gold)
