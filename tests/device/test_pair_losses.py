"""The losses with a learned scale on the stand-in for CuPy: the bits NumPy gives, and no look at a value."""

import numpy as np
import pytest

from nano_simcse.backend import to_device, to_host
from nano_simcse.losses import clip_loss, sharded_clip_loss, sigmoid_loss

from .parity import DEVICE

LOSSES = {
    "clip": lambda q, k, a, b: clip_loss(q, k, a),
    "clip, at its ceiling": lambda q, k, a, b: clip_loss(q, k, a, max_scale=2.0),
    "sigmoid": sigmoid_loss,
    "sharded": lambda q, k, a, b: sharded_clip_loss([q[:3], q[3:]], [k[:3], k[3:]], a),
}


def flat(values):
    for value in values:
        yield from flat(value) if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", LOSSES)
def test_equals_numpy_to_the_bit_without_a_download(name, meter):
    generator = np.random.default_rng(0)
    host = [generator.standard_normal((5, 4)).astype(np.float32) for _ in range(2)]
    host += [np.array(1.2, np.float32), np.array(-2.0, np.float32)]
    device = [to_device(x, DEVICE) for x in host]
    loss, backward = LOSSES[name](*host)
    expected = [loss, *flat(backward())]
    before = meter.downloads
    loss, backward = LOSSES[name](*device)
    got = [loss, *flat(backward())]
    assert meter.downloads == before, "the loss looked at a value"
    for a, b in zip(expected, got, strict=True):
        b = to_host(b)
        assert a.dtype == b.dtype == np.float32
        np.testing.assert_array_equal(a, b)
