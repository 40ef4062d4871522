"""Questions and passages in which one word is easy and one is hard: what mined negatives are for.

A passage is "agent verb noun", 300 nouns times 6 verbs, the agent drawn from 40. Its question names the noun by the
same word and the verb by one of eight others, so BM25 finds passages about the right noun and knows nothing of the
verb. An encoder has to learn that asked3_5 means verb3. It is a bag of words: the mean of word vectors (V, 48).
"""

import numpy as np
from bag_encoder import BagEncoder

from nano_simcse.evaluation import paired_recall
from nano_simcse.losses import hard_negative_loss, info_nce
from nano_simcse.retrieval import LexicalIndex

NOUNS, VERBS, AGENTS, SYNONYMS, WIDTH, BATCH, TAU = 300, 6, 40, 8, 48, 16, 0.05


class Facts:
    """1800 facts, half of them for training.

    questions, passages  lists of sentences, one per fact;  agents (n,) the answers
    train, test          row numbers;   q, p (n, V) bags of words
    bm25                 (n, n) lexical scores of passages for questions
    """

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        facts = [(noun, verb) for noun in range(NOUNS) for verb in range(VERBS)]
        self.agents = rng.integers(AGENTS, size=len(facts))
        self.passages = [f"agent{a} verb{v} noun{n}" for (n, v), a in zip(facts, self.agents, strict=True)]
        self.questions = [f"who asked{v}x{rng.integers(SYNONYMS)} noun{n}" for n, v in facts]
        self.nouns = np.array([n for n, _ in facts])
        order = rng.permutation(len(facts))
        self.train, self.test = np.split(order, 2)
        self.words = sorted({word for s in self.passages + self.questions for word in s.split()})
        bags = BagEncoder(self.words, WIDTH).bags
        self.q, self.p = bags(self.questions), bags(self.passages)
        self.bm25 = LexicalIndex(self.passages).score_matrix(self.questions)

    def holds_answer(self):
        """bool (n, n): passage j names the agent that answers question i."""
        return self.agents[:, None] == self.agents

    def mined(self, answers_allowed=False):
        """(n,) the best training passage by BM25 for each question; without one that holds the answer, by default."""
        scores = np.where(np.isin(np.arange(len(self.q)), self.train), self.bm25, -np.inf)
        return (scores if answers_allowed else np.where(self.holds_answer(), -np.inf, scores)).argmax(axis=1)


def train(facts, mined=None, masked=True, steps=300, lr=0.02, every=50, seed=0):
    """Recall@1 (percent) on the test questions among all passages, one number every `every` steps.

    mined: (n,) row of a passage per question, "random" for one drawn anew, or None for in-batch negatives only.
    masked False hands in ids that never agree.
    """
    encoder, rng, recalls = BagEncoder(facts.words, WIDTH, seed, lr), np.random.default_rng([seed, 4]), []
    others = np.concatenate([facts.test, facts.train])
    for step in range(steps + 1):
        table = encoder.table
        if step % every == 0:
            recalls.append(paired_recall(facts.q[facts.test] @ table, facts.p[others] @ table)["recall_at_1"])
        rows = rng.choice(facts.train, BATCH, replace=False)
        anew = rng.choice(facts.train, BATCH)
        q, p = facts.q[rows], facts.p[rows]
        if mined is None:
            encoder.step((q, p), info_nce(q @ table, p @ table, TAU)[1]())
            continue
        of = anew if isinstance(mined, str) else mined[rows]
        n, ids = facts.p[of], of if masked else -1 - np.arange(BATCH)
        encoder.step((q, p, n), hard_negative_loss(q @ table, p @ table, n @ table, TAU, rows, ids)[1]())
    return np.array(recalls)
