"""Every loss on the stand-in for CuPy: the bits NumPy gives, with nothing copied back."""

import numpy as np
import pytest

from nano_simcse import losses
from nano_simcse.backend import to_device, to_host
from nano_simcse.losses.skip_gram import skip_gram

from .parity import DEVICE

LOG_SCALE = np.array(1.5, np.float32)


def rows(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


A, B, C = (rows(5, 8, seed=seed) for seed in range(3))
PASSAGES, NEGATIVES = np.arange(5), np.arange(10).reshape(5, 2) + 3  # ids, which stay on the host


def fused(*arguments, **options):
    result = losses.FusedInfoNCE()(*arguments, **options)
    return result.loss, result.backward


CASES = {
    "CLIP": lambda move: losses.clip_loss(move(A), move(B), move(LOG_SCALE)),
    "sharded CLIP": lambda move: losses.sharded_clip_loss(
        [move(A[:3]), move(A[3:])], [move(B[:3]), move(B[3:])], move(LOG_SCALE)),
    "sigmoid": lambda move: losses.sigmoid_loss(move(A), move(B), move(LOG_SCALE), move(np.array(-2, np.float32))),
    "triplet": lambda move: losses.triplet(move(A), move(B), move(C)),
    "triplet of rows as they are": lambda move: losses.triplet(move(A), move(B), move(C), unit_length=False),
    "distillation": lambda move: losses.distillation(move(A), move(B), move(C)),
    "hard negatives": lambda move: losses.hard_negative_loss(
        move(A), move(B), move(rows(5, 2, 8)), 0.1, PASSAGES, NEGATIVES),
    "candidates of both views": lambda move: losses.candidate_info_nce(move(A), move(B), 0.1, candidates="both"),
    "candidates from a queue": lambda move: losses.candidate_info_nce(move(A), move(B), 0.1, queue=move(rows(3, 8))),
    "fused, with pairs that are no negatives": lambda move: fused(move(A), move(B), 0.1, pairs=((0, 1),)),
    "pair classifier": lambda move: losses.pair_classifier(
        move(A), move(B), move(rows(24, 3)), move(rows(3)), move(np.array([0, 1, 2, 0, 1]))),
    "skip-gram": lambda move: skip_gram(move(A), move(B), move(rows(5, 3, 8))),
}  # fmt: skip


def fetched(gradients):
    """All arrays of what a backward returns, which may hold lists, on the host."""
    parts = gradients if isinstance(gradients, tuple) else (gradients,)
    return [to_host(x) for part in parts for x in (part if isinstance(part, list) else [part])]


@pytest.mark.parametrize("loss_of", CASES.values(), ids=CASES)
def test_loss_and_gradients(loss_of, meter):
    expected, backward = loss_of(lambda x: x)
    got, device_backward = loss_of(lambda x: to_device(x, DEVICE))
    gradients = device_backward()
    assert meter.downloads == 0, "the loss looked at a value"
    np.testing.assert_array_equal(to_host(got), expected)
    for theirs, ours in zip(fetched(gradients), fetched(backward()), strict=True):
        assert theirs.dtype == np.float32
        np.testing.assert_array_equal(theirs, ours)
