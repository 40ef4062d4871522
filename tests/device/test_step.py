"""The training step on the stand-in for CuPy: the bits NumPy gives, and not one look at a value from the host."""

import sys

import numpy as np
import pytest

from nano_simcse.backend import to_device, to_host
from nano_simcse.data.batches import pack
from nano_simcse.encoder import encoder_forward
from nano_simcse.layers import POOLINGS, gelu
from nano_simcse.losses import info_nce, masked_lm
from nano_simcse.masks import MODES, Masks
from nano_simcse.optim import SGD, Adam, AdamW, clip_factor, clip_global_norm, global_norm

from .array import DeviceArray
from .meter import Banned
from .parity import DEVICE, encoder_on, in_device_order, loss_and_gradients, small_config, small_step

MASKS = Masks(seed=3, step=7, rate=0.3)
CASES = {
    **{pooling: {"pooling": pooling} for pooling in POOLINGS},
    "head": {"head": True, "pooling": "cls"},
    "exclude": {"exclude": True},
    "hard negatives": {"views": 3, "log_weight": 0.5},
    "hard negatives and exclude": {"views": 3, "exclude": True, "pooling": "cls"},
    **{f"masks {mode}": {"masks": Masks(3, 7, 0.3, mode)} for mode in MODES},
    "masked LM": {"mlm": True, "mlm_weight": 0.2},
    "tanh gelu": {"gelu": "tanh"},
}


def compare(expected, got):
    for a, b in zip(expected[0], got[0], strict=True):
        assert a.dtype == b.dtype == np.float32
        np.testing.assert_array_equal(a, b)
    for name, gradient in expected[1].items():
        np.testing.assert_array_equal(gradient, got[1][name], err_msg=name)
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_loss_and_gradients_equal_those_of_numpy_to_the_bit(case, meter, monkeypatch):
    case = {"masks": MASKS} | case
    config = small_config(**{key: case.pop(key) for key in ("head", "mlm", "gelu") if key in case})
    step = small_step(**{key: case.pop(key) for key in ("views", "exclude") if key in case})
    in_device_order(monkeypatch)
    compare(loss_and_gradients("cpu", config, step, **case), loss_and_gradients(DEVICE, config, step, **case))


def test_the_grouping_of_a_device_changes_the_rounding_alone(monkeypatch):
    config, step = small_config(head=True), small_step()
    plain = loss_and_gradients("cpu", config, step, MASKS)
    in_device_order(monkeypatch)
    grouped = loss_and_gradients("cpu", config, step, MASKS)
    np.testing.assert_allclose(grouped[0], plain[0], rtol=1e-6)
    for name, gradient in plain[1].items():
        np.testing.assert_allclose(grouped[1][name], gradient, rtol=0, atol=3e-6 * np.abs(gradient).max(), err_msg=name)


def test_a_step_looks_at_nothing_and_stays_in_float32(meter):
    encoder, step = encoder_on(DEVICE, small_config(head=True, mlm=True)), small_step()
    optimizer, before = AdamW(encoder.params, weight_decay=0.1), meter.downloads
    for number in range(3):
        batch = pack(step.rows, step.labels, multiple=16, longest=24).to(DEVICE)
        hidden, backward = encoder_forward(encoder.params, encoder.config, batch, Masks(0, number, 0.1))
        gradients = backward(hidden[-1])
        norm = global_norm(gradients)
        optimizer.step(gradients, 1e-3, factor=clip_factor(norm, 1.0))
    assert meter.downloads == before, "the step looked at a value"
    assert isinstance(norm, DeviceArray)
    assert float(norm) > 0


@pytest.mark.parametrize("options", [
    {}, {"symmetric": True}, {"hard": 1}, {"hard": 2, "log_weight": -0.7}, {"hard": 1, "symmetric": True, "exclude": 1},
    {"exclude": True, "symmetric": True}, {"temperature": 1e-3},
])  # fmt: skip
def test_every_form_of_info_nce(options, meter):
    generator, n = np.random.default_rng(0), 5
    options = {"temperature": 0.1} | options
    hard = options.pop("hard", 0)
    q, k = (generator.standard_normal((n, 8)).astype(np.float32) for _ in range(2))
    arrays = {"hard_negatives": generator.standard_normal((n * hard, 8)).astype(np.float32)} if hard else {}
    if options.pop("exclude", False):
        arrays["exclude"] = np.zeros((n, n * (1 + hard)), bool)
        arrays["exclude"][1, 4] = True
    loss, backward = info_nce(q, k, **arrays, **options)
    moved = {name: to_device(x, DEVICE) for name, x in arrays.items()}
    device_loss, device_backward = info_nce(to_device(q, DEVICE), to_device(k, DEVICE), **moved, **options)
    gradients = device_backward()
    assert meter.downloads == 0, "the loss looked at a value"
    np.testing.assert_array_equal(to_host(device_loss), loss)
    for expected, got in zip(backward(), gradients, strict=True):
        np.testing.assert_array_equal(to_host(got), expected)


def test_masked_lm_loss(meter):
    logits = np.random.default_rng(0).standard_normal((4, 9)).astype(np.float32)
    targets = np.array([8, 0, 3, 3])
    loss, backward = masked_lm(logits, targets)
    device_loss, device_backward = masked_lm(to_device(logits, DEVICE), to_device(targets, DEVICE))
    np.testing.assert_array_equal(to_host(device_backward()), backward())
    np.testing.assert_array_equal(to_host(device_loss), loss)


def test_gelu_in_float64_uses_the_device_s_erf(meter):
    meter.float64 = True
    x = np.linspace(-3, 3, 7).reshape(1, 7)
    y, backward = gelu(x)
    device_y, device_backward = gelu(to_device(x, DEVICE))
    np.testing.assert_array_equal(to_host(device_y), y)
    np.testing.assert_array_equal(to_host(device_backward(device_y)), backward(y))


@pytest.mark.parametrize("make", [
    SGD, lambda p: SGD(p, momentum=0.9), Adam, lambda p: AdamW(p, weight_decay=0.1),
], ids=["sgd", "momentum", "adam", "adamw"])  # fmt: skip
def test_optimisers(make, meter):
    results = []
    for device in ("cpu", DEVICE):
        encoder = encoder_on(device, small_config())
        optimizer = make(encoder.params)
        for lr in (1e-2, 1e-3):
            gradients = encoder.params.copy()
            clip_global_norm(gradients, 0.5)
            optimizer.step(gradients, lr)
        results.append(to_host(encoder.params.flat))
    np.testing.assert_array_equal(*results)
    assert meter.downloads == 1


def test_float64_parameters_are_noticed(meter):
    with pytest.raises(Banned, match="float64"):
        to_device(np.zeros(3), DEVICE)


def test_padding_does_not_reach_positions_the_model_does_not_have(meter):
    batch = pack(small_step().rows, multiple=16, longest=24)
    assert max(group.length for group in batch.groups) == 24 and len(batch.groups) == 2
    assert batch.positions.max() < 24


def test_no_launch_looks_like_a_step_of_its_own_module(meter):
    """The meter sees the package's modules: a training step without launches would make every count above empty."""
    meter.trace = True
    loss_and_gradients(DEVICE, small_config(), small_step(), MASKS)
    modules = {module for module, _ in meter.places}
    assert {"layers.attention", "layers.gelu", "layers.layer_norm", "losses.info_nce", "masks"} <= modules
    assert "cupy" in sys.modules
