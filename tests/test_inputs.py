"""Rows of embeddings brought to length 1, whatever numbers they are stored in, and arguments that are refused."""

from fractions import Fraction

import numpy as np
import pytest

from nano_simcse.errors import InputError
from nano_simcse.geometry import uniformity
from nano_simcse.grouping import near_duplicates, spherical_kmeans, zero_shot
from nano_simcse.inputs import is_whole, members, number_rows, require_count, require_number, unit_rows
from nano_simcse.mining import mine
from nano_simcse.model import SentenceEncoder
from nano_simcse.neighbours import NormalReference

HALF = (20 * np.random.default_rng(0).standard_normal((6, 384))).astype(np.float16)  # |row|^2 about 150,000
WIDE = HALF.astype(np.float64)
SIZES = {"float16": HALF, "1e20": (WIDE * 1e19).astype(np.float32), "1e-23": (WIDE * 1e-24).astype(np.float32)}


def cosines(x, y):
    return (x / np.linalg.norm(x, axis=1, keepdims=True)) @ (y / np.linalg.norm(y, axis=1, keepdims=True)).T


def test_unit_rows_by_hand():
    for dtype in (np.float32, np.float64):
        y = unit_rows(np.array([[3, -4], [0, 2]], dtype))
        assert y.dtype == dtype
        np.testing.assert_allclose(y, [[0.6, -0.8], [0, 1]], rtol=np.finfo(dtype).eps)
    np.testing.assert_allclose(unit_rows([[3.0, 4.0]]), [[0.6, 0.8]], rtol=1e-15)


@pytest.mark.parametrize(("x", "dtype"), [
    (np.array([[3, 4]], np.float16), np.float32), ([[3, 4]], np.float32), (np.array([[3, 4]], np.uint8), np.float32),
    ([[3.0, 4.0]], np.float64), (np.array([[3, 4]], np.longdouble), np.float64),
])  # fmt: skip
def test_a_type_without_its_own_arithmetic_becomes_one_with(x, dtype):
    y = unit_rows(x)
    assert y.dtype == dtype
    np.testing.assert_allclose(y, [[0.6, 0.8]], rtol=1e-6)
    assert unit_rows(x, dtype=np.float64).dtype == np.float64


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [3e38, 1e20, 1e-23, 1e-38, 1e-44])
def test_rows_whose_squares_leave_float32_keep_their_direction(size):
    x = np.array([[size, size / 2], [0.0, size]], np.float32)
    np.testing.assert_allclose(unit_rows(x), unit_rows(x.astype(np.float64)), atol=1e-7)
    assert unit_rows(x)[1].tolist() == [0, 1]


def test_no_rows_stay_no_rows_and_the_caller_keeps_its_own():
    assert unit_rows(np.empty((0, 3), np.float32)).shape == (0, 3)
    x = np.array([[3.0, 4.0]])
    unit_rows(x)
    assert x.tolist() == [[3, 4]]


@pytest.mark.parametrize(("x", "message"), [
    ([[1.0, 2.0], [np.nan, 1.0]], "^rows row 1 holds a NaN or infinity"),
    ([[1.0, -np.inf]], "^rows row 0 holds a NaN or infinity"),
    ([[1.0, 2.0], [0.0, 0.0]], "^rows row 1 is the zero vector"),
    ([1.0, 2.0], r"^rows must have shape \(n, D\) with D >= 1, got \(2,\)"),
    (np.empty((2, 0)), r"^rows must have shape \(n, D\) with D >= 1, got \(2, 0\)"),
    ([["a", "b"]], "^rows must be real numbers, got dtype <U1"),
    (np.ones((1, 2), complex), "^rows must be real numbers, got dtype complex128"),
    ([[1.0, 2.0], [3.0]], "^rows is not a table of numbers; expected rows of one width"),
])  # fmt: skip
def test_rows_without_a_direction_are_named(x, message):
    with pytest.raises(InputError, match=message):
        unit_rows(x, "rows")


# ---- what is built on them ----


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", SIZES)
def test_no_reading_of_embeddings_overflows_or_vanishes(kind):
    x = SIZES[kind]
    expected = cosines(WIDE, WIDE)
    others = expected - 2 * np.eye(6)
    np.testing.assert_allclose(SentenceEncoder.similarity(None, x, x), expected, atol=1e-6)
    label, lead = zero_shot(x, x)
    assert label.tolist() == list(range(6))
    np.testing.assert_allclose(lead, 1 - others.max(axis=1), atol=1e-6)
    scores = NormalReference(x, k=1).scores(x, without_self=True).values
    np.testing.assert_allclose(scores, np.sqrt(2 - 2 * others.max(axis=1)), atol=1e-6)
    mined = mine(x, x, 1, candidates="cross")
    np.testing.assert_array_equal(mined.columns[:, 0], others.argmax(axis=1))
    np.testing.assert_allclose(mined.cosines[:, 0], others.max(axis=1), atol=1e-6)
    np.testing.assert_allclose(mined.own, 1, atol=1e-6)
    assert near_duplicates(np.concatenate([x, x[:2]]), 0.99)[0].tolist() == [[0, 6], [1, 7]]
    clusters = spherical_kmeans(np.concatenate([x, x]), 6)
    assert clusters.label[:6].tolist() == clusters.label[6:].tolist() and len(set(clusters.label)) == 6
    assert uniformity(x) == pytest.approx(uniformity(WIDE), abs=1e-6)


# ---- arguments ----


def test_number_rows_are_float32_or_float64():
    wanted = {np.float16: np.float32, np.float32: np.float32, np.float64: np.float64, np.int64: np.float64}
    for given, kept in wanted.items():
        x = number_rows("a", np.array([1, 2], given))
        assert x.dtype == kept and x.tolist() == [[1, 2]]


def test_one_string_is_no_list_and_a_generator_is():
    assert members("words", (word for word in ("a", "b")), "a list of words") == ["a", "b"]
    for value, kind in (("ab", "str"), (b"ab", "bytes"), (None, "NoneType"), (5, "int")):
        with pytest.raises(InputError, match=f"^words is .*, a {kind}; expected a list of words"):
            members("words", value, "a list of words")


@pytest.mark.parametrize("value", [0, -1, 2.5, 2.0, True, "3", None])
def test_a_count_is_whole_and_large_enough(value):
    with pytest.raises(InputError, match=r"^steps is .*expected a whole number"):
        require_count("steps", value)


@pytest.mark.parametrize("value", [np.nan, np.inf, 0, -1.0, True, np.bool(True), "3", None, 1j])
def test_a_number_is_finite_and_by_request_above_zero(value):
    with pytest.raises(InputError, match=r"^lr is .*; expected a finite number above 0"):
        require_number("lr", value, positive=True)


def test_numbers_of_numpy_are_numbers():
    require_count("steps", np.int64(1))
    for value in (1, 0.5, np.float32(0.5), np.int8(1), Fraction(1, 2)):
        require_number("lr", value, positive=True)
    require_number("power", -1.5)


@pytest.mark.parametrize("value", [0, np.int64(0), True, np.True_, 1.0, "1", None, [1]])
def test_a_count_is_a_whole_number_and_no_truth_value(value):
    assert is_whole(1, 1) and is_whole(np.int64(7), 1) and is_whole(-3) and not is_whole(value, 1)
