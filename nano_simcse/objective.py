"""One contrastive objective: a sampler, a candidate set, a temperature, and the checks that belong with them.

What can go wrong without an error message is checked where the loss is computed: too few negatives, a temperature
below the floor that was agreed on, embeddings that have collapsed. What is worth watching comes back with the loss.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .backend import to_host
from .errors import DegenerateTemperature, InputError, RepresentationCollapse, TooFewNegatives
from .geometry import GeometryReport, collapse_guard, geometry_report
from .losses.candidate_info_nce import candidate_info_nce, check_views

LEAST_TEMPERATURE = 1e-3
LEAST_ROWS = 8  # a smaller batch spans too few directions to tell a collapse from chance


def refuse_collapse(embeddings):
    """Raise RepresentationCollapse naming every sign that `geometry.collapse_guard` finds in embeddings (n, D).

    Judged by the spread and the rank of the rows, not by their mean cosine: two opposite points have mean cosine 0, and
    a narrow cone whose rows still differ in many directions ranks as well as ever.
    """
    report = collapse_guard(embeddings)
    if report.collapsed:
        raise RepresentationCollapse(f"the embeddings have collapsed: {'; '.join(report.reasons)}")


@dataclass(frozen=True)
class ContrastiveResult:
    """Loss of one batch, and what it was measured against.

    negatives (B,): negatives of each anchor, repeats counted. geometry: of anchors and positives, or None.
    """

    loss: np.ndarray
    backward: Callable
    sampler: str
    candidates: str
    negatives: np.ndarray
    geometry: GeometryReport | None

    def summary(self):
        """{"min", "mean", "max"} of the negatives per anchor: one number would hide the rows with duplicates."""
        n = self.negatives
        return {"min": int(n.min()), "mean": float(n.mean()), "max": int(n.max())}


class ContrastiveObjective:
    """InfoNCE with the sampler handed in.

    sampler            a NegativeSampler over the rows of the batch
    temperature        tau; below `least_temperature` it is refused. The floor is a policy: the loss is finite at any
                       tau > 0, but 1 / tau scales the gradient and one negative takes all of the push.
    candidates         "cross", "same-view" or "both": which block the sampler's rows are read from
    min_negatives      least number of negatives of a row
    correct            subtract log q_j from the logit of candidate j; needs a sampler with `probabilities`
    guard              raise RepresentationCollapse when the anchors, 8 or more, have collapsed
    measure            report the geometry with the loss
    """

    def __init__(self, sampler, temperature=0.07, *, candidates="cross", min_negatives=16, correct=False, guard=True,
                 measure=True, least_temperature=LEAST_TEMPERATURE):  # fmt: skip
        if not temperature >= least_temperature:
            raise DegenerateTemperature(f"temperature is {temperature}; this objective's floor is {least_temperature}")
        if correct and getattr(sampler, "probabilities", None) is None:
            raise InputError(f"sampler {sampler.name} has no probabilities to correct for")
        self.sampler, self.temperature, self.candidates = sampler, temperature, candidates
        self.min_negatives, self.correct, self.guard, self.measure = min_negatives, correct, guard, measure

    def __call__(self, anchors, positives):
        """ContrastiveResult of anchors (B, D) and positives (B, D).

        Raises TooFewNegatives naming the row, RepresentationCollapse, or InputError for shapes that do not fit, zero
        rows, or a sampler that names the anchor itself or a row outside the batch.
        """
        check_views(anchors, positives, self.candidates)
        if self.guard and len(anchors) >= LEAST_ROWS:
            refuse_collapse(anchors)
        log_weights, negatives = self._weights(anchors)
        loss, backward = candidate_info_nce(
            anchors, positives, self.temperature, candidates=self.candidates, log_weights=log_weights
        )
        geometry = geometry_report(to_host(anchors), to_host(positives)) if self.measure and len(anchors) > 1 else None
        return ContrastiveResult(loss, backward, self.sampler.name, self.candidates, negatives, geometry)

    def _weights(self, anchors):
        """Log weights (B, 2B) of the sampled candidates and the number of negatives (B,) of each row."""
        n = len(anchors)
        blocks = 2 if self.candidates == "both" else 1
        draws, negatives = np.zeros((n, n)), np.zeros(n, int)
        for anchor in range(n):
            rows = np.asarray(self.sampler.candidates(anchors, anchor), dtype=np.int64)
            if rows.ndim != 1 or ((rows < 0) | (rows >= n) | (rows == anchor)).any():
                raise InputError(f"sampler {self.sampler.name} names a row for anchor {anchor} that is no other row")
            negatives[anchor] = count = blocks * len(rows)
            if count < self.min_negatives:
                raise TooFewNegatives(
                    f"anchor {anchor} has {count} negatives from sampler {self.sampler.name}; expected at least "
                    f"{self.min_negatives}"
                )
            draws[anchor] = np.bincount(rows, minlength=n)
        with np.errstate(divide="ignore"):
            block = np.log(draws)
        weights = np.tile(block, 2)
        weights[np.arange(n), np.arange(n)] = 0.0
        if self.correct:
            weights -= np.tile(np.log(self.sampler.probabilities), 2)
        return weights, negatives
