"""Training: one step, the loop around it, and what it trains on."""

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .config import TrainingConfig
    from .runs import RunResult, compare, train

__all__ = ["RunResult", "TrainingConfig", "compare", "train"]

__getattr__ = lazy_names(
    __name__, {"TrainingConfig": ".config", **dict.fromkeys(("RunResult", "compare", "train"), ".runs")}
)
