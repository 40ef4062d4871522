"""Windows and forecasts from past ones: a planted analogue, the temporal rule, overlaps."""

import numpy as np
import pytest

from nano_simcse.analogues import cut_windows, forecast_by_analogues, overlapping, standardise_windows
from nano_simcse.errors import InputError


def test_windows_are_cut_where_they_say():
    panel = np.arange(20.0).reshape(2, 10)
    w = cut_windows(panel, 3, 2, step=2)
    assert len(w) == 6 and w.series.tolist() == [0, 0, 0, 1, 1, 1] and w.start.tolist() == [0, 2, 4] * 2
    np.testing.assert_array_equal(w.past[4], [12, 13, 14])
    np.testing.assert_array_equal(w.future[4], [15, 16])
    assert w.origin[4] == 5 and w.end[4] == 7


def test_standardised_windows_forget_level_and_scale():
    x = np.random.default_rng(0).standard_normal((4, 9))
    shape, level, scale = standardise_windows(3 + 2 * x)
    np.testing.assert_allclose(shape, standardise_windows(x)[0], atol=1e-12)
    np.testing.assert_allclose(level + scale * shape, 3 + 2 * x)


def test_a_constant_window_has_shape_zero():
    shape, level, scale = standardise_windows(np.full((1, 5), 1e6 + 0.1))
    assert not shape.any() and scale[0, 0] == 1 and level[0, 0] == pytest.approx(1e6 + 0.1)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("value", [0.0, 0.1, -0.7, 1234.5])
def test_a_constant_window_is_recognised_in_every_precision(dtype, value):
    past = np.full((3, 37), value, dtype)
    past[1] = np.arange(37)
    shape, level, scale = standardise_windows(past)
    assert not shape[[0, 2]].any() and scale[:, 0].tolist() == [1, scale[1, 0], 1] and scale[1, 0] > 10
    np.testing.assert_allclose(level[[0, 2], 0], past[[0, 2], 0], rtol=1e-2 if dtype == np.float16 else 1e-6)
    assert shape.dtype == scale.dtype == dtype


def test_what_is_left_of_a_constant_by_rounding_is_no_shape_and_a_small_wave_is_one():
    wobble = np.float32(3) + np.float32(2.4e-7) * (np.arange(12, dtype=np.float32) % 2)
    assert np.ptp(wobble) > 0 and not standardise_windows(wobble[None])[0].any()
    wave = np.float32(3) + np.float32(1e-4) * (np.arange(12, dtype=np.float32) % 2)
    np.testing.assert_allclose(np.abs(standardise_windows(wave[None])[0]), 1, rtol=1e-2)


def test_the_order_in_memory_does_not_make_a_constant_window_vary():
    past = np.asfortranarray(np.full((5, 3000), 0.1, np.float32))  # its sums are not pairwise
    shape, _, scale = standardise_windows(past)
    assert not shape.any() and (scale == 1).all()


def test_overlap_is_symmetric_within_a_series_and_counts_the_continuation():
    w = cut_windows(np.zeros((2, 12)), 3, 2, step=1)
    near = overlapping(w)
    assert (near == near.T).all() and not near.diagonal().any()
    row = near[0]  # series 0, start 0: shares a step with starts 1 to 4, not with 5
    assert w.start[row].tolist() == [1, 2, 3, 4] and set(w.series[row]) == {0}


def planted():
    """Two copies of one episode at other levels and scales, 30 steps apart, in noise."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal(60)
    episode = np.array([0.0, 2, 1, 3, -1, 2, 5, 4])
    x[5:13], x[45:53] = 10 + 2 * episode, -4 + 0.5 * episode
    return cut_windows(x[None], 6, 2), episode


def test_a_planted_analogue_is_found_and_rescaled():
    w, episode = planted()
    shape = standardise_windows(w.past)[0]
    query = np.flatnonzero(w.start == 45)
    found = forecast_by_analogues(w[query], shape[query], w, shape, k=1)
    assert w.start[found.ids[0, 0]] == 5 and found.cosines[0, 0] == pytest.approx(1)
    np.testing.assert_allclose(found.forecast[0], -4 + 0.5 * episode[6:])


def test_nothing_from_the_future_is_used():
    w, _ = planted()
    shape = standardise_windows(w.past)[0]
    query = np.flatnonzero(w.start == 30)
    found = forecast_by_analogues(w[query], shape[query], w, shape, k=5)
    assert (w.end[found.ids] <= w.origin[query]).all()
    series = np.r_[w.past[:, 0], w.past[-1, 1:], w.future[-1]]
    series[w.origin[query[0]] :] = np.random.default_rng(9).standard_normal(60 - w.origin[query[0]])
    changed = cut_windows(series[None], 6, 2)
    again = forecast_by_analogues(w[query], shape[query], changed, standardise_windows(changed.past)[0], k=5)
    np.testing.assert_array_equal(found.forecast, again.forecast)
    leaky = forecast_by_analogues(w[query], shape[query], w, shape, k=40, allow_future=True)
    assert (w.end[leaky.ids] > w.origin[query]).any() and not (leaky.ids == query).any()


def test_weights_follow_the_cosines():
    w, _ = planted()
    shape = standardise_windows(w.past)[0]
    query = np.flatnonzero(w.start == 45)
    found = forecast_by_analogues(w[query], shape[query], w, shape, k=3, temperature=0.5)
    expected = np.exp(found.cosines[0] / 0.5)
    np.testing.assert_allclose(found.weights[0], expected / expected.sum())


def test_errors():
    w, _ = planted()
    shape = standardise_windows(w.past)[0]
    early = np.flatnonzero(w.start == 3)
    with pytest.raises(InputError, match="only 2 analogues"):
        forecast_by_analogues(w[early], shape[early], w, shape, k=5)
    with pytest.raises(InputError, match="one embedding"):
        forecast_by_analogues(w[early], shape, w, shape)
    for temperature in (0, -0.1, np.nan, np.inf):
        with pytest.raises(InputError, match=f"temperature is {temperature}; expected a finite number above 0"):
            forecast_by_analogues(w[early], shape[early], w, shape, k=1, temperature=temperature)
    with pytest.raises(InputError, match=r"k is 1\.5, a float; expected a whole number"):
        forecast_by_analogues(w[early], shape[early], w, shape, k=1.5)
    with pytest.raises(InputError, match="query_rows are 2 wide, but the library has rows of width 6"):
        forecast_by_analogues(w[early], shape[early, :2], w, shape, k=1)
    with pytest.raises(InputError, match="library_rows row 0 holds a NaN"):
        forecast_by_analogues(w[early], shape[early], w, shape * np.nan, k=1)
    with pytest.raises(InputError, match="holds no window"):
        cut_windows(np.zeros((1, 5)), 4, 2)
