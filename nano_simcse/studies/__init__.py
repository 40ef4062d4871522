"""Studies: several training runs that differ in one thing, over several seeds, as one table and one picture."""

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .plan import Arm, Ordering, Plan, load_plan
    from .run import StudyResult, run_study
    from .verdicts import Verdict, verdict

TOPICS = (
    "dropout", "masks", "pooling", "temperature", "batch", "positives", "hard-negatives", "mlm", "whitening"
)  # fmt: skip

__all__ = ["TOPICS", "Arm", "Ordering", "Plan", "StudyResult", "Verdict", "load_plan", "run_study", "verdict"]

__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(("Arm", "Ordering", "Plan", "load_plan"), ".plan"),
        **dict.fromkeys(("StudyResult", "run_study"), ".run"),
        **dict.fromkeys(("Verdict", "verdict"), ".verdicts"),
    },
)
