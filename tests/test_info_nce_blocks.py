"""InfoNCE in blocks of rows is the plain InfoNCE, whatever the block, the options and the scale of the loss."""

import math
import sys
import tracemalloc

import numpy as np
import pytest
from cases import loss_errors

from nano_simcse.errors import InputError
from nano_simcse.gradient_check import relative_error
from nano_simcse.losses import info_nce, info_nce_blocks
from nano_simcse.losses.log_one_plus import log_one_plus

N, WIDTH = 23, 6
LIMITS = {np.float64: 1e-12, np.float32: 1e-5}
EXCLUDE = np.random.default_rng(9).random((N, N)) < 0.2
EXCLUDE[np.arange(N), np.arange(N)] = False

CASES = {
    "plain": {},
    "hard negatives": {"k": 1},
    "two hard negatives, weighted": {"k": 2, "log_weight": math.log(3)},
    "own hard negatives removed": {"k": 2, "log_weight": -math.inf},
    "exclude": {"exclude": EXCLUDE},
    "everything excluded in one row": {"exclude": EXCLUDE | (np.arange(N)[:, None] == 4) & ~np.eye(N, dtype=bool)},
    "queue": {"queue": 7},
    "symmetric": {"symmetric": True},
    "symmetric, all excluded": {"symmetric": True, "exclude": ~np.eye(N, dtype=bool)},
    "everything": {
        "k": 2,
        "log_weight": -0.7,
        "exclude": np.concatenate([EXCLUDE, np.random.default_rng(8).random((N, 2 * N + 7)) < 0.1], axis=1),
        "queue": 7,
        "symmetric": True,
    },
}


def draw(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def made(case, dtype, near=False):
    """(queries, keys, options) of a case; near: keys close to their queries, so that the loss is small."""
    options = dict(CASES[case])
    q, k = draw(N, WIDTH, seed=1, dtype=dtype), draw(N, WIDTH, seed=2, dtype=dtype)
    if near:
        k = q + dtype(0.01) * k
    if count := options.pop("k", 0):
        options["hard_negatives"] = draw(N * count, WIDTH, seed=3, dtype=dtype)
    if "queue" in options:
        options["queue"] = draw(options["queue"], WIDTH, seed=4, dtype=dtype)
    return q, k, options


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", CASES)
def test_blocks_equal_the_plain_form(case, dtype):
    for near, temperature in ((False, 0.5), (False, 0.05), (True, 0.05), (False, 1e-3)):
        q, k, options = made(case, dtype, near)
        expected, plain_back = info_nce(q, k, temperature, **options, blocks=0)
        for rows in (1, 5, N, 1000):
            loss, backward = info_nce(q, k, temperature, **options, blocks=rows)
            assert loss.dtype == dtype and loss.shape == ()
            assert float(loss) == pytest.approx(float(expected), rel=LIMITS[dtype], abs=0)
            gradients, plain = backward(), plain_back()
            assert len(gradients) == len(plain) == 2 + ("hard_negatives" in options)
            for value, reference in zip(gradients, plain, strict=True):
                assert value.dtype == dtype and value.shape == reference.shape
                if reference.any():
                    assert relative_error(value, reference) <= LIMITS[dtype]
                else:
                    assert not value.any()


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_smallest_temperature(dtype, symmetric):
    """Losses of about 1e5 and gradients of about 1e6: only the largest negative of a row counts."""
    q, k, _ = made("plain", dtype)
    expected, plain_back = info_nce(q, k, 1e-6, symmetric=symmetric, blocks=0)
    loss, backward = info_nce(q, k, 1e-6, symmetric=symmetric, blocks=4)
    assert float(loss) == pytest.approx(float(expected), rel=LIMITS[dtype], abs=0)
    assert float(loss) > 1e5
    for value, reference in zip(backward(), plain_back(), strict=True):
        assert relative_error(value, reference) <= LIMITS[dtype]


@pytest.mark.parametrize("symmetric", [False, True])
def test_a_loss_far_below_the_rounding_of_one_keeps_its_digits(symmetric):
    """Four right angles at tau = 0.02: loss = log(1 + 3 exp(-50)) = 5.8e-22, and 1 + that is 1."""
    u = np.eye(4)
    for rows in (1, 3):
        loss, backward = info_nce(u, u, 0.02, symmetric=symmetric, blocks=rows)
        assert float(loss) == pytest.approx(3 * math.exp(-50), rel=1e-12, abs=0)
        # dL/dq_i = p / (N tau) sum of the other keys, which are perpendicular to q_i; twice that with both directions
        push = math.exp(-50) / (4 * 0.02)
        np.testing.assert_allclose(backward()[0], push * (1 - np.eye(4)), rtol=1e-12, atol=push * 1e-12)


@pytest.mark.parametrize("symmetric", [False, True])
def test_the_gradient_of_the_blocks_equals_central_differences(symmetric):
    q, k, h = draw(5, 4, seed=1), draw(5, 4, seed=2), draw(10, 4, seed=3)
    options = {"log_weight": 0.4, "queue": draw(3, 4, seed=5), "symmetric": symmetric, "blocks": 2}
    errors = loss_errors(lambda q, k, h: info_nce(q, k, 0.3, hard_negatives=h, **options), q, k, h)
    assert max(errors) <= 1e-10


def test_sums_of_columns_that_are_not_rescaled_are_caught(monkeypatch):
    """A negative control: a running sum must shrink whenever the running maximum grows."""
    q, k, _ = made("plain", np.float64)
    expected = info_nce(q, k, 0.05, symmetric=True, blocks=0)[0]

    class Forgetful:
        def __getattr__(self, name):
            return getattr(np, name)

        @staticmethod
        def exp(x, out=None):
            return np.ones_like(x) if x.ndim == 1 else np.exp(x, out=out)

    monkeypatch.setattr(info_nce_blocks, "array_module", lambda x: Forgetful())
    broken = info_nce(q, k, 0.05, symmetric=True, blocks=4)[0]
    assert abs(float(broken) - float(expected)) > 0.01 * float(expected)


def test_large_matrices_go_in_blocks_and_small_ones_do_not(monkeypatch):
    x = np.zeros(1, np.float32)
    assert info_nce_blocks.rows_per_block(2048, 2048, x) == 0
    assert info_nce_blocks.rows_per_block(2048, 2049, x) == 1023
    assert info_nce_blocks.rows_per_block(4096, 4096, x) == 512
    assert info_nce_blocks.rows_per_block(32768, 32768, x) == 256
    walks = []
    one_way = info_nce_blocks.one_way
    plain = sys.modules[info_nce.__module__]
    monkeypatch.setattr(plain, "one_way", lambda *a: walks.append(a[0].rows) or one_way(*a))
    q = draw(64, 3)
    info_nce(q, q, 0.5)
    monkeypatch.setattr(info_nce_blocks, "BLOCKS_ABOVE", 64 * 64 - 1)
    info_nce(q, q, 0.5)
    info_nce(q, q, 0.5, blocks=0)
    info_nce(q, q, 0.5, blocks=7)
    assert walks == [(1 << 21) // 64, 7]


def test_memory_grows_with_the_rows_and_not_with_their_square():
    """Counted by tracemalloc, which sees every array of NumPy: N = 4096, D = 16, 64 MB the matrix."""
    q, k = draw(4096, 16, seed=1, dtype=np.float32), draw(4096, 16, seed=2, dtype=np.float32)
    peaks = {}
    for symmetric in (False, True):
        tracemalloc.start()
        info_nce(q, k, 0.05, symmetric=symmetric)[1]()
        peaks[symmetric] = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
    assert peaks[False] < 24 and peaks[True] < 56  # MB; a block is 8, the matrix 64


def test_the_queue_is_a_set_of_negatives_that_belong_to_no_row():
    """Equal to the plain loss over the longer list of candidates; N rows of it equal N hard negatives."""
    q, k, extra = draw(5, 4, seed=1), draw(5, 4, seed=2), draw(5, 4, seed=3)
    loss, backward = info_nce(q, k, 0.2, queue=extra)
    as_hard, hard_back = info_nce(q, k, 0.2, hard_negatives=extra)
    assert float(loss) == float(as_hard)
    assert len(backward()) == 2
    for mine, theirs in zip(backward(), hard_back()[:2], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    unit = [x / np.sqrt((x * x).sum(axis=1, keepdims=True)) for x in (q, k, extra[:2])]
    z = unit[0] @ np.concatenate(unit[1:]).T / 0.2
    by_hand = (np.log(np.exp(z).sum(axis=1)) - z.diagonal()).mean()
    assert float(info_nce(q, k, 0.2, queue=extra[:2])[0]) == pytest.approx(by_hand, rel=1e-13)


def test_what_is_refused():
    q = draw(4, 3)
    for blocks in (-1, 1.5, True):
        with pytest.raises(InputError, match=r"blocks is .*; expected None, 0 for the whole matrix, or a number"):
            info_nce(q, q, 0.5, blocks=blocks)
    with pytest.raises(InputError, match=r"queue \(2, 4\) must be \(Q, D\) with D = 3"):
        info_nce(q, q, 0.5, queue=draw(2, 4))
    with pytest.raises(InputError, match=r"exclude .* \(4, 6\)"):
        info_nce(q, q, 0.5, queue=draw(2, 3), exclude=np.zeros((4, 4), bool))


def test_log_one_plus():
    shift = np.array([-800.0, -50.0, 0.0, 3.0, 1e5, 2.0])
    total = np.array([2.0, 3.0, 1.0, 2.0, 5.0, 0.0])
    value, slope = log_one_plus(shift, total)
    np.testing.assert_allclose(
        value,
        [0, 3 * math.exp(-50), math.log(2), math.log1p(2 * math.exp(3)), 1e5 + math.log(5), 0],
        rtol=1e-15,
    )
    np.testing.assert_allclose(
        slope, [0, math.exp(-50), 0.5, 1 / (math.exp(-3) + 2), 1 / 5, math.exp(2)], rtol=1e-15
    )
