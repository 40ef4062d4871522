"""Skip-gram on the stand-in for CuPy: the loss to the bit without a look at a value, and a whole training run."""

import numpy as np

from nano_simcse.backend import to_device, to_host
from nano_simcse.losses import skip_gram
from nano_simcse.word2vec import train_word2vec

from .parity import DEVICE, in_device_order


def test_the_loss_equals_numpy_to_the_bit_without_a_download(meter):
    draw = np.random.default_rng(0)
    host = [draw.standard_normal(shape).astype(np.float32) for shape in ((5, 4), (5, 4), (5, 3, 4))]
    loss, backward = skip_gram(*host)
    expected = [loss, *backward()]
    before = meter.downloads
    loss, backward = skip_gram(*[to_device(x, DEVICE) for x in host])
    got = [loss, *backward()]
    assert meter.downloads == before, "the loss looked at a value"
    for a, b in zip(expected, got, strict=True):
        assert a.dtype == b.dtype == np.float32
        np.testing.assert_array_equal(a, to_host(b))


def test_training_equals_the_host_and_comes_back_to_it(meter, monkeypatch):
    in_device_order(monkeypatch)
    documents = [["a", "b", "a", "c", "b", "a"], ["c", "c", "a", "b"]] * 3
    settings = {"width": 4, "window": 2, "negatives": 2, "steps": 6, "batch_size": 8, "lr": 0.05, "progress": False}
    host = train_word2vec(documents, **settings)
    device = train_word2vec(documents, **settings, device=DEVICE)
    for a, b in ((host.vectors, device.vectors), (host.contexts, device.contexts)):
        assert isinstance(b, np.ndarray)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(host.losses, device.losses, rtol=1e-6)
