"""Augmentations: shape, dtype, argument untouched, same seed same result, and what each is meant to do."""

import numpy as np
import pytest

from nano_simcse.augmentations import (
    AUGMENTATIONS,
    augment,
    brightness,
    crop,
    jitter,
    masking,
    scaling,
    taught_invariances,
    word_deletion,
)  # fmt: skip
from nano_simcse.errors import InputError

FLOATS = [name for name in AUGMENTATIONS if name != "word deletion"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FLOATS)
def test_shape_dtype_and_argument_are_kept(name, dtype):
    x = np.random.default_rng(0).standard_normal((5, 20)).astype(dtype)
    before = x.copy()
    y = AUGMENTATIONS[name].apply(np.random.default_rng(1), x)
    assert y.shape == x.shape and y.dtype == dtype and not np.array_equal(y, x)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(y, AUGMENTATIONS[name].apply(np.random.default_rng(1), x))


def test_scaling_changes_the_size_only_and_brightness_the_level_only():
    x = np.random.default_rng(0).standard_normal((6, 10))
    ratio = scaling(np.random.default_rng(1), x) / x
    np.testing.assert_allclose(ratio, ratio[:, :1] * np.ones(10))
    shift = brightness(np.random.default_rng(1), x) - x
    np.testing.assert_allclose(shift, shift[:, :1] * np.ones(10), atol=1e-12)


def test_jitter_and_masking_do_as_much_as_asked():
    x = np.ones((200, 50))
    assert (jitter(np.random.default_rng(0), x, 0.3) - x).std() == pytest.approx(0.3, rel=0.03)
    assert (masking(np.random.default_rng(0), x, 0.2) == 0).mean() == pytest.approx(0.2, abs=0.01)
    np.testing.assert_array_equal(masking(np.random.default_rng(0), x, 0.0), x)


def test_crop_is_a_stretch_of_the_row():
    ramp = np.linspace(0, 1, 40)[None].repeat(50, axis=0)
    y = crop(np.random.default_rng(0), ramp, least=0.5)
    steps = np.diff(y, axis=1)
    np.testing.assert_allclose(steps, steps[:, :1] * np.ones(39), atol=1e-12)  # a ramp stays a ramp
    length = y[:, -1] - y[:, 0]
    assert y.min() >= 0 and y.max() <= 1 and length.min() >= 0.5 - 1e-12 and length.max() <= 1 + 1e-12
    np.testing.assert_allclose(crop(np.random.default_rng(0), ramp, least=1.0), ramp)


def test_word_deletion_moves_words_left_and_keeps_one():
    ids = np.array([[5, 6, 7, 0, 0], [8, 0, 0, 0, 0], [0, 0, 0, 0, 0]], np.int32)
    gone = word_deletion(np.random.default_rng(0), ids, rate=1.0)
    assert gone.tolist() == [[5, 0, 0, 0, 0], [8, 0, 0, 0, 0], [0, 0, 0, 0, 0]] and gone.dtype == np.int32
    for seed in range(20):
        row = word_deletion(np.random.default_rng(seed), ids, rate=0.4)[0]
        words = row[row != 0]
        assert list(words) == sorted(words) and set(words) <= {5, 6, 7} and not row[len(words):].any()


def test_the_declared_list():
    assert taught_invariances(["brightness", "crop"]) == ["the level of the signal", "position and speed"]
    with pytest.raises(InputError, match="'colour'"):
        taught_invariances(["colour"])
    x = np.ones((2, 4))
    np.testing.assert_array_equal(augment(np.random.default_rng(0), x, []), x)
    with pytest.raises(InputError, match="not known"):
        augment(np.random.default_rng(0), x, ["jitter", "blur"])
    with pytest.raises(InputError, match="share"):
        masking(np.random.default_rng(0), x, 1.5)
