"""Does an order of two arms show here? A rule that is stated and can say "I do not know".

With the scores b_s of the better arm and w_s of the worse one, at the seeds s that both have, d_s = b_s - w_s. Equal
seeds start from equal parameters and see equal batches, so the difference is taken seed by seed. With the mean d and
the sample standard deviation s_d of the d_s:

    reproduced        d > s_d
    not reproduced    d < -s_d
    undecided         otherwise, and where there are fewer than two seeds

For three seeds d > s_d is t > 1.73 in Student's paired test, a one-sided level of 0.11: a rule for reading a table of
three seeds, no proof.
"""

import math
import statistics
from dataclasses import dataclass

REPRODUCED, NOT_REPRODUCED, UNDECIDED = "reproduced", "not reproduced", "undecided"
RULE = (
    "reproduced: the mean over seeds of the paired difference exceeds its sample standard deviation; "
    "not reproduced: it is below minus that; undecided: in between, or fewer than two seeds"
)


@dataclass(frozen=True)
class Verdict:
    """What the scores of two arms say: REPRODUCED, NOT_REPRODUCED or UNDECIDED, the mean difference, its sample
    standard deviation (nan below two seeds), and the number of seeds."""

    answer: str
    difference: float
    spread: float
    seeds: int


def verdict(better, worse):
    """Verdict on better > worse; better, worse: {seed: score}. A score that is nan (an encoder that scores all pairs
    alike, or a run whose loss was not finite) counts as 0, which is what no agreement at all is worth."""
    seeds = sorted(better.keys() & worse.keys())
    gaps = [_worth(better[seed]) - _worth(worse[seed]) for seed in seeds]
    difference = statistics.fmean(gaps) if gaps else math.nan
    if len(gaps) < 2:
        return Verdict(UNDECIDED, difference, math.nan, len(gaps))
    spread = statistics.stdev(gaps)
    answer = UNDECIDED
    if abs(difference) > spread:
        answer = REPRODUCED if difference > 0 else NOT_REPRODUCED
    return Verdict(answer, difference, spread, len(gaps))


def _worth(score):
    return 0.0 if math.isnan(score) else score
