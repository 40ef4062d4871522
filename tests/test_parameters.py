"""Named views over one buffer."""

import numpy as np
import pytest

from nano_simcse.parameters import Parameters

SHAPES = {"weight": (2, 3), "bias": (3,), "scalar": ()}


def test_views_and_buffer_are_the_same_memory():
    params = Parameters(SHAPES)
    params["weight"][...] = [[1, 2, 3], [4, 5, 6]]
    params["bias"][...] = 7
    params["scalar"][...] = 9
    assert params.flat.tolist() == [1, 2, 3, 4, 5, 6, 7, 7, 7, 9]
    params.flat[4] = -5
    assert params["weight"][1, 1] == -5
    view = params["bias"]
    view += 1
    assert params.flat[6:9].tolist() == [8, 8, 8]


def test_it_is_a_mapping_in_the_order_given():
    params = Parameters(SHAPES)
    assert list(params) == ["weight", "bias", "scalar"] and len(params) == 3
    assert {name: view.shape for name, view in params.items()} == SHAPES
    assert "bias" in params and "other" not in params
    with pytest.raises(KeyError, match="other"):
        params["other"]


def test_assignment_copies_into_the_buffer_and_never_rebinds():
    params, value = Parameters(SHAPES), np.array([1.0, 2.0, 3.0])
    view = params["bias"]
    params["bias"] = value
    assert params["bias"] is view and params.flat[6:9].tolist() == [1, 2, 3]
    value[...] = 9
    params["bias"] += 0.5
    assert params["bias"] is view and params.flat[6:9].tolist() == [1.5, 2.5, 3.5]
    assert params.flat.dtype == np.float32
    with pytest.raises(ValueError, match="broadcast"):
        params["bias"] = np.zeros(4)
    with pytest.raises(KeyError, match="other"):
        params["other"] = value


def test_default_is_float32_zero_and_a_given_buffer_is_not_copied():
    assert Parameters(SHAPES).flat.dtype == np.float32
    assert not Parameters(SHAPES).flat.any()
    flat = np.arange(10.0)
    params = Parameters(SHAPES, flat)
    assert params.flat is flat and np.shares_memory(params["weight"], flat)


@pytest.mark.parametrize("shape", [(9,), (11,), (10, 1), ()])
def test_a_buffer_of_the_wrong_size_is_named(shape):
    with pytest.raises(ValueError, match=r"the named shapes need \(10,\)"):
        Parameters(SHAPES, np.zeros(shape))


def test_copies_are_independent():
    params = Parameters(SHAPES, np.arange(10.0))
    zeros, copy, single = params.zeros_like(), params.copy(), params.astype(np.float32)
    assert zeros.flat.dtype == copy.flat.dtype == np.float64 and single.flat.dtype == np.float32
    assert not zeros.flat.any() and zeros.shapes == copy.shapes == single.shapes == SHAPES
    params.flat[...] = -1
    assert copy.flat.tolist() == single.flat.tolist() == list(range(10))
    assert not np.shares_memory(params.astype(np.float64).flat, params.flat)


def test_no_parameters_at_all():
    assert Parameters({}).flat.shape == (0,)
