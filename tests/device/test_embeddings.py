"""What is read from embeddings, on the stand-in for CuPy: rows stay where they are, results are those of the host."""

import numpy as np
import pytest

from nano_simcse.analogues import cut_windows, forecast_by_analogues, standardise_windows
from nano_simcse.backend import on_host, to_device, to_host
from nano_simcse.errors import InputError
from nano_simcse.geometry import uniformity
from nano_simcse.grouping import near_duplicates, zero_shot
from nano_simcse.inputs import unit_rows
from nano_simcse.neighbours import NormalReference

from .parity import DEVICE


def rows(n, seed=0, dtype=np.float32):
    return (20 * np.random.default_rng(seed).standard_normal((n, 8))).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
def test_unit_rows_are_those_of_the_host_and_stay_on_the_device(meter, dtype):
    meter.float64 = True
    x = rows(5, dtype=dtype)
    y = unit_rows(to_device(x, DEVICE))
    assert not on_host(y)
    assert to_host(y).dtype == unit_rows(x).dtype
    np.testing.assert_array_equal(to_host(y), unit_rows(x))
    assert unit_rows(to_device(x[:0], DEVICE)).shape == (0, 8)


@pytest.mark.parametrize(("value", "message"), [(np.nan, "row 3 holds a NaN"), (0.0, "row 3 is the zero vector")])
def test_rows_without_a_direction_are_named_there_too(meter, value, message):
    x = rows(5)
    x[3] = value
    with pytest.raises(InputError, match=message):
        unit_rows(to_device(x, DEVICE))


def test_readings_equal_those_of_the_host(meter):
    x, y = rows(6), rows(4, seed=1)
    there, theirs = to_device(x, DEVICE), to_device(y, DEVICE)
    assert uniformity(there) == uniformity(x)
    np.testing.assert_array_equal(near_duplicates(there, 0.3)[0], near_duplicates(x, 0.3)[0])
    for a, b in zip(zero_shot(there, theirs), zero_shot(x, y), strict=True):
        np.testing.assert_array_equal(to_host(a), b)
    found, expected = (NormalReference(r, k=2).scores(q).values for r, q in ((there, theirs), (x, y)))
    np.testing.assert_array_equal(to_host(found), expected)


def test_a_forecast_equals_that_of_the_host(meter):
    panel = np.random.default_rng(0).standard_normal((1, 40)).astype(np.float32)
    panel[0, 5:12] = 3.0  # a constant window
    found = []
    for x in (panel, to_device(panel, DEVICE)):
        w = cut_windows(x, 6, 2)
        shape = standardise_windows(w.past)[0]
        shape[:, 0] += 1  # a constant window has no shape, and so no direction
        query = w.start >= 30
        found.append(to_host(forecast_by_analogues(w[query], shape[query], w, shape, k=3).forecast))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)
