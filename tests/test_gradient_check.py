"""The referee itself: a derivative known by hand, and what it cannot probe."""

import numpy as np
import pytest

from nano_simcse.errors import InputError
from nano_simcse.gradient_check import numeric_gradient, relative_error


def test_the_gradient_of_a_cubic_where_it_was_asked_for():
    x = np.array([[1.0, -2.0], [3.0, 0.5]])
    gradient = numeric_gradient(lambda: (x**3).sum(), x, entries=[1, 2])
    np.testing.assert_allclose(gradient, [[np.nan, 12.0], [27.0, np.nan]], rtol=1e-9)
    np.testing.assert_array_equal(x, [[1.0, -2.0], [3.0, 0.5]])


def test_the_error_is_relative_to_the_largest_entry():
    assert relative_error(np.array([4.0, 1.0, 7.0]), np.array([4.0, 0.0, np.nan])) == 0.25


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.array([1, 2]), "x is an array of int64; expected one of float32 or float64"),
        ([1.0, 2.0], "x is a list; expected an array"),
        (np.ones((2, 2)).T, "x is not contiguous"),
    ],
)
def test_an_array_that_cannot_be_probed_is_named(x, message):
    with pytest.raises(InputError, match=message):
        numeric_gradient(lambda: 0.0, x)
