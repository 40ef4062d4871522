"""Chapter 15's helpers: the loss in plain Python, and small runs (hard share, queue, temperature, table of scores)."""

import math
import time
import tracemalloc

import numpy as np
from linear_encoder import LinearEncoder
from scipy.optimize import minimize
from trails import World

from nano_simcse.evaluation import spearman
from nano_simcse.layers import normalize
from nano_simcse.losses import FusedInfoNCE, candidate_info_nce, info_nce
from nano_simcse.memory import MemoryQueue, follow
from nano_simcse.mining import mine
from nano_simcse.negatives import MinedSampler
from nano_simcse.objective import ContrastiveObjective
from nano_simcse.parameters import Parameters

# ---- stage one: numbers and lists ----------------------------------------------------------------------------------


def cosine_of(x, y):
    """Cosine of two lists of numbers."""
    dot = math.fsum(a * b for a, b in zip(x, y, strict=True))
    return dot / math.sqrt(math.fsum(a * a for a in x) * math.fsum(b * b for b in y))


def plain_loss(anchors, positives, negatives_of, tau):
    """InfoNCE with lists; negatives_of(i) gives the vectors that anchor i is compared with besides its positive."""
    if not anchors:
        raise ValueError("a batch needs at least one row")
    losses = []
    for i, (anchor, positive) in enumerate(zip(anchors, positives, strict=True)):
        own = cosine_of(anchor, positive) / tau
        rivals = [cosine_of(anchor, other) / tau - own for other in negatives_of(i)]
        top = max([0.0, *rivals])
        losses.append(top + math.log(math.exp(-top) + math.fsum(math.exp(r - top) for r in rivals)))
    return math.fsum(losses) / len(losses)


def negatives_by_name(anchors, positives, name):
    """The callable of a candidate set: i -> list of vectors."""
    blocks = {"cross": [positives], "same-view": [anchors], "both": [positives, anchors]}[name]
    return lambda i: [row for block in blocks for j, row in enumerate(block) if j != i]


def stage_milliseconds(sizes=(32, 256), width=16, tau=0.07):
    """Processor time of one loss over both blocks, per stage and batch size; loss and gradient but for the lists.

    Rows: lists and a callable, one matrix, fused float32. Only a measurement: no check should read it to a digit.
    """
    fused, rows = FusedInfoNCE(), np.empty((3, len(sizes)))
    for column, n in enumerate(sizes):
        a, p = np.random.default_rng(n).standard_normal((2, n, width))
        lists, narrow = (a.tolist(), p.tolist()), (a.astype(np.float32), p.astype(np.float32))
        calls = (
            lambda lists=lists: plain_loss(*lists, negatives_by_name(*lists, "both"), tau),
            lambda a=a, p=p: candidate_info_nce(a, p, tau, candidates="both")[1](),
            lambda narrow=narrow: fused(*narrow, tau).backward(),
        )
        for row, call in enumerate(calls):
            repeats = 1 if row == 0 else 20
            call() if row else None
            start = time.process_time()
            for _ in range(repeats):
                call()
            rows[row, column] = 1000 * (time.process_time() - start) / repeats
    return rows


def peak_bytes(call):
    """Largest number of bytes that Python's allocator held at once while call() ran, beyond what it held before."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# ---- small runs on trails.World --------------------------------------------------------------------------------------


def score_of(encoder, world):
    """Spearman correlation of cosines with the gold similarities of the world's pairs."""
    a, b = (normalize(encoder.encode(side))[0] for side in (world.first, world.second))
    return spearman((a * b).sum(axis=1), world.gold)


HARD_SHARES = (("0", 0.0, False), ("0.25", 0.25, False), ("0.5", 0.5, False), ("1", 1.0, False),
               ("1, duplicates known", 1.0, True))


def hard_share_study(seed, steps=150, n=32, twins=8, count=8, tau=0.05):
    """Train on paraphrases with a share of mined negatives; a batch of n rows holds `twins` pairs that say the same.

    Returns (settings, 3): score, mean loss of the last 50 steps, and how often (there) the hardest mined row of a row
    that has a twin is that twin.
    """
    twin = np.full(n, -1)
    twin[:twins], twin[n - twins :] = np.arange(n - twins, n), np.arange(twins)
    pairs, rows = [(i, n - twins + i) for i in range(twins)], []
    for _, cap, known in HARD_SHARES:
        world, draw = World(seed), np.random.default_rng([seed, 3])
        encoder, seen, marked = LinearEncoder(world.train.shape[1], seed=seed, rate=0.0), [], pairs if known else ()
        for _ in range(steps):
            chosen = draw.choice(len(world.meanings), n - twins, replace=False)
            meanings = world.meanings[np.r_[chosen, chosen[:twins]]]

            def loss_of(h, _, draw=draw, cap=cap, marked=marked, seen=seen):
                hard = mine(h[:n], h[n:], count, candidates="cross", duplicates=marked)
                sampler = MinedSampler(hard.rows(), count, draw, cap, marked)
                result = ContrastiveObjective(sampler, tau, min_negatives=1, guard=False, measure=False)(h[:n], h[n:])
                found = hard.rows()[twin >= 0, 0] == twin[twin >= 0]
                seen.append((float(result.loss), found.mean()))
                return result.loss, lambda: (np.concatenate(result.backward()), np.zeros_like(h))

            encoder.step(np.concatenate([world.say(meanings), world.say(meanings)]), loss_of)
        rows.append([score_of(encoder, world), *np.mean(seen[-50:], axis=0)])
    return np.array(rows)


QUEUES = (("batch 8", 8, 0, 0.0), ("batch 8 + queue 120, m = 0", 8, 120, 0.0),
          ("batch 8 + queue 120, m = 0.99", 8, 120, 0.99), ("batch 128", 128, 0, 0.0))


class QueueRun:
    """InfoNCE on paraphrases with a queue of `size` older keys, written by an encoder that follows with momentum.

    Keys get no gradient, as in MoCo, with size 0 either: so a batch with a queue compares with a batch without.
    """

    def __init__(self, seed, batch, size, momentum, tau=0.05):
        self.world, self.draw = World(seed), np.random.default_rng([seed, 4])
        self.encoder = LinearEncoder(self.world.train.shape[1], seed=seed, rate=0.0)
        self.slow = Parameters(self.encoder.parameters.shapes, self.encoder.parameters.flat.copy())
        self.queue, self.momentum = MemoryQueue(size) if size else None, momentum
        self.batch, self.tau, self.vectors = batch, tau, []

    def run(self, steps):
        for _ in range(steps):
            chosen = self.draw.choice(len(self.world.meanings), self.batch, replace=False)
            first, second = (self.world.say(self.world.meanings[chosen]) for _ in range(2))
            held = self.queue.rows() if self.queue is not None else None

            def loss_of(h, _, second=second, held=held):
                # without a queue the momentum is 0, and slow is the encoder itself
                loss, back = candidate_info_nce(h, second @ self.slow["weight"], self.tau, queue=held)
                return loss, lambda: (back()[0], np.zeros_like(h))

            self.encoder.step(first, loss_of)
            follow(self.slow, self.encoder.parameters, self.momentum)
            if self.queue is not None:
                self.queue.push(second @ self.slow["weight"])
                self.vectors = [*self.vectors, second][-(self.queue.size // self.batch) :]
        return self

    def staleness(self):
        """1 - mean cosine of the queued keys with what the key encoder says about them now."""
        now = normalize(np.concatenate(self.vectors) @ self.slow["weight"])[0]
        return 1 - float((now * self.queue.rows()).sum(axis=1).mean())

    def score(self):
        return score_of(self.encoder, self.world)


def temperature_study(seed, taus, steps=200, n=32):
    """(taus, 2): the training loss at the end (last 50 steps) and the score of an encoder trained at each tau."""
    rows = []
    for tau in taus:
        world, draw = World(seed), np.random.default_rng([seed, 5])
        encoder = LinearEncoder(world.train.shape[1], seed=seed)
        losses = [encoder.step(world.train[draw.choice(len(world.train), n, replace=False)],
                               lambda a, p, tau=tau: info_nce(a, p, tau)) for _ in range(steps)]
        rows.append([np.mean(losses[-50:]), score_of(encoder, world)])
    return np.array(rows)


# ---- a table of scores, fitted exactly -------------------------------------------------------------------------------


def sampled_table(p_of_user, q, correct):
    """The critic f (users, items) that minimises the two-negative sampled loss exactly, over all negative pairs.

        loss = mean_u sum_i p(i|u) sum_jk q_j q_k  -log softmax(f_u - c)[i among i, j, k],   c = log q if correct else 0

    Gradient: for every (u, i, j, k) with its weight, softmax minus one on i. Rows of f are fixed to mean 0 under no
    loss of generality (a constant per user changes nothing).
    """
    users, items = p_of_user.shape
    i, j, k = (index.ravel() for index in np.indices((items, items, items)))
    shift = np.log(q) if correct else np.zeros(items)
    weight = p_of_user[:, i] * q[j] * q[k] / users

    def objective(flat):
        f = flat.reshape(users, items) - shift
        logits = np.stack([f[:, i], f[:, j], f[:, k]], axis=2)
        top = logits.max(axis=2, keepdims=True)
        e = np.exp(logits - top)
        total = e.sum(axis=2, keepdims=True)
        loss = (weight * (np.log(total[..., 0]) + top[..., 0] - logits[..., 0])).sum()
        share = weight[..., None] * e / total
        gradient = np.zeros((users, items))
        for at, column in zip((i, j, k), range(3), strict=True):
            np.add.at(gradient.T, at, share[..., column].T)
        np.add.at(gradient.T, i, -weight.T)
        return loss, gradient.ravel()

    found = minimize(objective, np.zeros(users * items), jac=True, method="L-BFGS-B",
                     options={"maxiter": 5000, "ftol": 1e-18, "gtol": 1e-11})
    f = found.x.reshape(users, items)
    return f - f.mean(axis=1, keepdims=True)


