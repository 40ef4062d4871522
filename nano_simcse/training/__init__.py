"""Training: one step, the loop around it, and what it trains on."""

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .comparison import compare
    from .config import TrainingConfig
    from .runs import RunResult, train

__all__ = ["RunResult", "TrainingConfig", "compare", "train"]

__getattr__ = lazy_names(
    __name__, {"TrainingConfig": ".config", "RunResult": ".runs", "compare": ".comparison", "train": ".runs"}
)
