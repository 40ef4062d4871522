"""On a real device (`pytest -m gpu`): the equalities that `python -m benchmarks.gpu` reports."""

import numpy as np
import pytest
from tiny import TINY, write_sentences

from benchmarks.equality import GRADIENT_LIMIT, MASK_SHAPES, mask_mismatches, step_errors
from benchmarks.workload import SIZES
from nano_simcse import SentenceEncoder, train
from nano_simcse.backend import resolve_device
from nano_simcse.errors import DeviceError

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def device():
    try:
        return resolve_device("cuda")
    except DeviceError as error:
        pytest.skip(str(error))


def test_masks_are_the_same_bits(device):
    assert mask_mismatches(device) == dict.fromkeys(MASK_SHAPES, 0)


@pytest.mark.parametrize("size", SIZES[:2], ids=lambda size: size.name)
def test_loss_and_gradients(device, size):
    for name, (error, error_of_numpy) in step_errors(device, size).items():
        assert error < GRADIENT_LIMIT, f"{name}: {error:.1e}, NumPy {error_of_numpy:.1e}"


def test_a_run_and_its_embeddings(device, tmp_path):
    text = write_sentences(tmp_path / "text.txt")
    runs = [train(text, out=tmp_path / place, **TINY, device=place) for place in ("cpu", "cuda")]
    texts = ["the cat watches the river", "a robot"]
    on_host = SentenceEncoder.load(tmp_path / "cuda").encode(texts)
    np.testing.assert_allclose(runs[1].encoder.encode(texts), on_host, rtol=0, atol=1e-5)
    np.testing.assert_allclose(on_host, runs[0].encoder.encode(texts), rtol=0, atol=5e-3)  # twelve steps apart
