"""Against a frozen reference made once with torch (reference/make_reference.py), so that parity needs no torch."""

import json
from pathlib import Path

import numpy as np
import pytest
from cases import padded_masks, simcse_step, view_batch, view_labels
from safetensors import safe_open
from test_composed_step import masked_lm_step

from nano_simcse.encoder import EncoderConfig, parameter_shapes
from nano_simcse.gradient_check import relative_error
from nano_simcse.masks import Masks
from nano_simcse.optim import AdamW, global_norm
from nano_simcse.parameters import Parameters

PATH = Path(__file__).parent / "reference" / "step.safetensors"

# dtype -> limits of the relative error of (a loss, the gradient of a tensor, the ten losses)
LIMITS = {
    np.float64: (1e-13, 1e-13, 1e-12),  # measured 8e-16, 5e-15, 3e-15
    np.float32: (2e-6, 4e-5, 4e-5),  # measured 2e-7, 4e-6, 3e-6
}


class Reference:
    def __init__(self):
        with safe_open(PATH, framework="numpy") as file:
            self.s = json.loads(file.metadata()["settings"])
            self.arrays = {name: file.get_tensor(name) for name in file.keys()}
        s = self.s
        sizes = (s[k] for k in ("vocab_size", "layers", "width", "heads", "feed_forward", "max_positions"))
        self.config = EncoderConfig(*sizes, head=True, mlm=True)
        self.rows = [row[:n] for row, n in zip(self.arrays["rows"], self.arrays["lengths"], strict=True)]

    def named(self, prefix):
        return {n.removeprefix(prefix): a for n, a in self.arrays.items() if n.startswith(prefix)}

    def parameters(self, dtype):
        params = Parameters(parameter_shapes(self.config), dtype=dtype)
        start = self.named("start.")
        assert set(start) == set(params)
        for name, view in params.items():
            view[...] = start[name]
        return params

    def masks(self, step=0):
        return Masks(self.s["seed"], step, self.s["rate"])

    def step(self, params, step=0):
        options = {"pooling": "cls", "temperature": self.s["temperature"]}
        return simcse_step(params, self.config, view_batch(self.rows), self.masks(step), **options)


@pytest.fixture(scope="module")
def reference():
    return Reference()


def assert_gradients(gradients, expected, limit):
    assert set(gradients) == set(expected)
    errors = {name: relative_error(gradients[name], expected[name]) for name in gradients}
    assert max(errors.values()) <= limit, errors


def test_the_file_is_small_and_complete(reference):
    assert PATH.stat().st_size < 400_000
    assert len(reference.arrays["losses"]) == len(reference.arrays["norms"]) == 10
    assert np.isfinite(reference.arrays["losses"]).all()
    reached = [name for name, g in reference.named("gradient.").items() if g.any()]
    assert len(reached) == len(reference.named("gradient.")) - 5  # all but the five tensors of the mlm head
    assert all(g.any() for name, g in reference.named("mlm.").items() if not name.startswith("head"))


def test_masks_are_those_the_reference_was_made_with(reference):
    length = reference.arrays["rows"].shape[1]
    labels = view_labels(len(reference.rows), 2)
    for step in range(reference.s["steps"]):
        for site, keep in padded_masks(reference.masks(step), labels, length, reference.config).items():
            np.testing.assert_array_equal(np.packbits(keep), reference.arrays[f"masks.{step}.{site}"])


@pytest.mark.parametrize("dtype", LIMITS)
def test_loss_and_every_gradient_of_the_first_step(reference, dtype):
    loss, backward = reference.step(reference.parameters(dtype))
    assert float(loss) == pytest.approx(reference.arrays["losses"][0], abs=0, rel=LIMITS[dtype][0])
    assert_gradients(backward(), reference.named("gradient."), LIMITS[dtype][1])


@pytest.mark.parametrize("dtype", LIMITS)
def test_hard_negatives_with_every_option(reference, dtype):
    n = len(reference.rows)
    exclude = np.concatenate([np.eye(n, k=1, dtype=bool), np.eye(n, k=2, dtype=bool)], axis=1)
    loss, backward = simcse_step(
        reference.parameters(dtype),
        reference.config,
        view_batch(reference.rows, 3),
        reference.masks(),
        pooling="mean",
        views=3,
        temperature=reference.s["temperature"],
        log_weight=reference.s["log_weight"],
        symmetric=True,
        exclude=exclude,
    )
    assert float(loss) == pytest.approx(float(reference.arrays["triple"]), abs=0, rel=LIMITS[dtype][0])
    assert_gradients(backward(), reference.named("triple."), LIMITS[dtype][1])


@pytest.mark.parametrize("dtype", LIMITS)
def test_masked_language_modelling(reference, dtype):
    s, batch = reference.s, view_batch(reference.rows)
    places = batch.first[s["mlm_row"]] + np.array(s["mlm_place"])
    params = reference.parameters(dtype)
    loss, backward = masked_lm_step(
        params, reference.config, batch, reference.masks(), places, np.array(s["mlm_targets"])
    )
    assert float(loss) == pytest.approx(float(reference.arrays["mlm"]), abs=0, rel=LIMITS[dtype][0])
    assert_gradients(backward(), reference.named("mlm."), LIMITS[dtype][1])


@pytest.mark.parametrize("dtype", LIMITS)
def test_ten_steps_of_adamw_follow_the_same_path(reference, dtype):
    s, params = reference.s, reference.parameters(dtype)
    adamw = AdamW(params, tuple(s["betas"]), s["eps"], s["weight_decay"])
    losses, norms = [], []
    for step in range(s["steps"]):
        loss, backward = reference.step(params, step)
        gradients = backward()
        losses.append(float(loss))
        norms.append(float(global_norm(gradients)))
        adamw.step(gradients, s["lr"])
    np.testing.assert_allclose(losses, reference.arrays["losses"], rtol=LIMITS[dtype][2])
    np.testing.assert_allclose(norms, reference.arrays["norms"], rtol=10 * LIMITS[dtype][2])
    if dtype == np.float64:
        for name, end in reference.named("end.").items():
            difference = np.abs(params[name] - end)
            if name.endswith("qkv.bias"):
                # no loss sees the keys' biases: their gradient is rounding, which Adam's division makes visible
                keys = np.split(difference, 3)[1]
                assert keys.max() < 1e-6
                keys[...] = 0
            assert difference.max() < 1e-10, name


def test_another_step_and_another_order_of_masks_would_not_fit(reference):
    """The control: the reference notices a changed mask."""
    loss, backward = reference.step(reference.parameters(np.float64), step=1)
    assert abs(float(loss) - reference.arrays["losses"][0]) > 1e-3
    with pytest.raises(AssertionError):
        assert_gradients(backward(), reference.named("gradient."), 1e-2)
