"""What a model can do, in numbers: recall on held-out pairs, the shape of the cloud, agreement with a dev file."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from ..evaluation import evaluate_sts, rank_report
from ..geometry import alignment, effective_rank, mean_pair_cosine, uniformity
from ..partners import Partners
from ..retrieval import EQUAL_WEIGHT, LexicalIndex, fuse
from ..tables import as_table

FUSION_WEIGHTS = (EQUAL_WEIGHT, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9)
CLEARLY = 2.5  # standard errors of a gain over equal weights: chance gives one of eight others as much once in twenty
LEAST_PAIRS = 30  # whose mean gain can be called clear
MEASURES = {
    "recall_at_1": "recall@1 (%)",
    "alignment": "alignment",
    "uniformity": "uniformity",
    "mean_pair_cosine": "mean pair cosine",
    "effective_rank": "effective rank",
    "dev_spearman": "dev Spearman",
}


@dataclass(frozen=True)
class Judge:
    """Held-out pairs (query, target) and, optionally, STS pairs of a dev file."""

    pairs: list
    dev: list | None = None

    @property
    def chooses(self):
        """Whether there is anything to choose a checkpoint by."""
        return bool(self.pairs or self.dev)

    def measure(self, encoder):
        """{measure: value} of MEASURES, in their order; without pairs or dev file their measures are absent.

        recall_at_1: percent of queries whose own target is the nearest, as `protocol.evaluate_pairs` counts;
        alignment: of the pairs; the rest: over queries and targets together.
        """
        result = {}
        if self.pairs:
            queries, candidates = self.embed(encoder)
            targets = candidates[self.partners.own]
            cloud = np.concatenate([queries, targets])
            result = {
                "recall_at_1": round(_recall(self.partners.cosine_ranks(queries, candidates)), 4),
                "alignment": alignment(queries, targets),
                "uniformity": uniformity(cloud),
                "mean_pair_cosine": mean_pair_cosine(cloud),
                "effective_rank": effective_rank(cloud),
            }
        if self.dev:
            result["dev_spearman"] = evaluate_sts(Remembered(encoder), self.dev)["spearman"]
        return result

    @cached_property
    def partners(self):
        """What each query chooses from."""
        return Partners(self.pairs)

    def embed(self, encoder):
        """Embeddings of the queries (n, D) and of the m candidates (m, D), in the order of `partners`."""
        texts = self.partners.anchors + self.partners.candidates
        embeddings = Remembered(encoder).encode(texts, show_progress_bar=False)
        return embeddings[: len(self.pairs)], embeddings[len(self.pairs) :]

    def search_scores(self, encoder):
        """(dense, lexical) scores of every query with every candidate, each (n, m)."""
        lexical = LexicalIndex(self.partners.candidates).score_matrix(self.partners.anchors)
        return encoder.similarity(*self.embed(encoder)), lexical

    def score(self, encoder):
        """One number to choose a checkpoint by, larger is better: dev Spearman, else recall@1, else None."""
        if self.dev:
            return evaluate_sts(Remembered(encoder), self.dev)["spearman"]
        return _recall(self.partners.cosine_ranks(*self.embed(encoder))) if self.pairs else None


class Remembered:
    """A checkpoint that encodes each list of texts once and remembers the answer, however often it is measured.

    Encoders with equal fingerprints give equal answers, so they share them: the score that a run chooses by is that
    of the report, and the arms of a study start from one model.
    """

    def __init__(self, encoder):
        self.encoder, self._answers = encoder, _answers(encoder.device, encoder.fingerprint())

    def encode(self, texts, **options):
        """As `SentenceEncoder.encode`, whose options must be the same from call to call."""
        texts = tuple(texts)
        if texts not in self._answers:
            answer = self.encoder.encode(list(texts), **options)
            answer.flags.writeable = False  # it will be given to others
            self._answers[texts] = answer
        return self._answers[texts]


@lru_cache(maxsize=4)  # checkpoints
def _answers(device, fingerprint):
    """The same dict whenever it is asked for, until four other checkpoints have been."""
    return {}


def search_report(encoder, test, validation):
    """How search with this encoder does on the test pairs: recall@1 in percent of BM25 and of the fused scores.

    Dense and lexical scores have equal weights, unless the validation pairs are clearly for others.
    """
    if not test.pairs:
        return {}
    weight = EQUAL_WEIGHT
    if validation.pairs:
        weight = dense_weight(*validation.search_scores(encoder), validation.partners)
    dense, lexical = test.search_scores(encoder)
    return {
        "bm25": round(_recall(test.partners.ranks(lexical)), 4),
        "fused": round(_recall(test.partners.ranks(fuse(dense, lexical, weight=weight))), 4),
        "dense_weight": weight,
    }


def dense_weight(dense, lexical, partners):
    """The weight of FUSION_WEIGHTS with the best mean reciprocal rank, if it beats equal weights by more than CLEARLY
    standard errors of the difference, else EQUAL_WEIGHT: an encoder that finds little by itself should not outvote the
    words, but neither should the chance of a few hundred queries decide. EQUAL_WEIGHT below LEAST_PAIRS queries.

    dense, lexical: scores (n, m) of the n queries of `partners` with its m candidates.
    """
    if len(dense) < LEAST_PAIRS:
        return EQUAL_WEIGHT
    reciprocal = {w: 1 / partners.ranks(fuse(dense, lexical, weight=w)) for w in FUSION_WEIGHTS}
    best = max(reciprocal, key=lambda w: reciprocal[w].mean())
    gain = reciprocal[best] - reciprocal[EQUAL_WEIGHT]
    return best if gain.mean() > CLEARLY * gain.std(ddof=1) / np.sqrt(len(gain)) else EQUAL_WEIGHT


def _recall(ranks):
    return rank_report(ranks)["recall_at_1"]


def before_after(before, after):
    """The table of a run: one line a measure, before and after."""
    rows = [(title, {"before": before.get(name), "after": after.get(name)}) for name, title in MEASURES.items()]
    return as_table([row for row in rows if row[1]["after"] is not None], ["before", "after"])
