"""Losses by hand: each returns (loss, backward); backward() returns the gradients in argument order."""

from .candidate_info_nce import CANDIDATE_SETS, candidate_info_nce, pair_mask
from .clip import clip_loss
from .distillation import distillation
from .fused_info_nce import FusedInfoNCE
from .hard_negatives import duplicate_mask, hard_negative_loss
from .info_nce import info_nce
from .masked_lm import masked_lm
from .pair_classifier import pair_classifier, pair_features
from .sharded_clip import sharded_clip_loss
from .sigmoid import sigmoid_loss
from .skip_gram import skip_gram
from .triplet import triplet

__all__ = [
    "CANDIDATE_SETS",
    "FusedInfoNCE",
    "candidate_info_nce",
    "clip_loss",
    "distillation",
    "duplicate_mask",
    "hard_negative_loss",
    "info_nce",
    "masked_lm",
    "pair_classifier",
    "pair_features",
    "pair_mask",
    "sharded_clip_loss",
    "sigmoid_loss",
    "skip_gram",
    "triplet",
]
