"""The stand-in for CuPy, put in place for one test."""

import pytest

from .library import installed


@pytest.fixture
def meter():
    """`import cupy` finds the stand-in; the value is its meter, at zero."""
    with installed() as meter:
        yield meter
