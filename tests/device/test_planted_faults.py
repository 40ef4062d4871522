"""Small edits that a NumPy user makes without noticing, each planted in a copy of the source, each caught by a test.

The edit is invisible on the host: there the code runs, and mostly gives the same numbers.
"""

import importlib
import inspect
import sys
import types

import numpy as np
import pytest

from nano_simcse.masks import Masks

from . import test_source, test_step, test_training
from .parity import loss_and_gradients, small_config, small_step


def plant(monkeypatch, module, old, new):
    """Replace `old` by `new` in the source of a module, and its functions wherever the package has imported them."""
    original = importlib.import_module(f"nano_simcse.{module}")
    source = inspect.getsource(original)
    assert source.count(old) == 1, f"{module} has {source.count(old)} lines {old!r}"
    faulty = types.ModuleType(original.__name__)
    faulty.__package__, faulty.__file__ = original.__package__, original.__file__
    monkeypatch.setitem(sys.modules, original.__name__, faulty)  # dataclasses look their module up
    exec(compile(source.replace(old, new), original.__file__, "exec"), faulty.__dict__)
    monkeypatch.setitem(sys.modules, original.__name__, original)
    for name, thing in vars(original).items():
        if inspect.isfunction(thing) and thing.__module__ == original.__name__:
            for user in [m for key, m in sys.modules.items() if key.startswith(("nano_simcse", "device."))]:
                if vars(user).get(name) is thing:
                    monkeypatch.setattr(user, name, vars(faulty)[name])


def bits(case):
    def caught(meter, monkeypatch, tmp_path):
        chosen = dict(test_step.CASES[case])
        test_step.test_loss_and_gradients_equal_those_of_numpy_to_the_bit(chosen, meter, monkeypatch)

    return caught


def no_looking(meter, monkeypatch, tmp_path):
    test_step.test_a_step_looks_at_nothing_and_stays_in_float32(meter)


def no_looking_in_the_loss(meter, monkeypatch, tmp_path):
    test_step.test_every_form_of_info_nce({}, meter)


def second_device(meter, monkeypatch, tmp_path):
    text = tmp_path / "text.txt"
    test_training.test_the_second_device_makes_its_arrays_on_itself(test_training.write_sentences(text), tmp_path)


FAULTS = {  # name: (module, line, faulty line, the test that catches it, what that test says)
    "np.asarray of a device array": (
        "layers.gelu", "u = xp.abs(x)", "u = np.abs(np.asarray(x))",
        bits("mean"), "Implicit conversion",
    ),
    "where= in a ufunc": (
        "layers.gelu", "xp.exp(gauss, out=gauss)", "xp.exp(gauss, out=gauss, where=gauss < 0)",
        bits("mean"), "unexpected keyword argument 'where'",
    ),
    "in-place matmul": (
        "layers.head", "    y = array_module(x).tanh(a)",
        "    def turn(rows):\n        rows @= weight\n\n    a = x.copy()\n    turn(a)\n    a += bias\n"
        "    y = array_module(x).tanh(a)",
        bits("head"), "Arrays are not equal",
    ),
    "host index array": (
        "training.step", "places = [to_device(np.array(part), encoder.device) for part in parts]",
        "places = [np.array(part) for part in parts]",
        bits("mean"), "index array on the host",
    ),
    "list as index": (
        "losses.masked_lm", "loss = (xp.log(total[:, 0]) - shifted[rows, targets]).mean()",
        "loss = (xp.log(total[:, 0]) - shifted[list(range(n)), targets]).mean()",
        bits("masked LM"), "index array on the host",
    ),
    "missing to_device": (
        "training.step", "to_device(exclude, device_of(z))", "exclude",
        bits("exclude"), "Unsupported type",
    ),
    "float() in the hot path": (
        "optim", "limit = norm.dtype.type(limit)", "norm, limit = (norm.dtype.type(float(x)) for x in (norm, limit))",
        no_looking, "looked at a value",
    ),
    "a branch on a device value": (
        "layers.normalize", "if on_host(x) and not length.all():", "if not length.all():",
        no_looking_in_the_loss, "looked at a value",
    ),
    "random numbers drawn on the host": (
        "self_attention", "masks.keep(site, labels, x.shape[1])",
        "np.random.default_rng(site).random(x.shape) > masks.rate",
        bits("mean"), "Unsupported type",
    ),
    "float64 from a default": (
        "layers.layer_norm", "xp.full((width, 1), 1 / width, dtype=x.dtype)", "xp.full((width, 1), 1 / width)",
        bits("mean"), "float64 array came up",
    ),
    "maximum.reduce": (
        "layers.attention", "scores.max(axis=-1, keepdims=True)", "xp.maximum.reduce(scores, axis=-1, keepdims=True)",
        bits("mean"), "maximum.reduce is not supported",
    ),
    "+= through an index array": (
        "layers.embedding", "scatter_add(dtable, ids, dy)", "dtable[ids] += dy",
        bits("mean"), "writes one place twice",
    ),
    "memory taken for zero": (
        "layers.layer_norm", "xp.zeros_like(gamma)", "xp.empty_like(gamma)",
        bits("mean"), "Arrays are not equal",
    ),
    "np instead of xp": (
        "layers.head", "array_module(x).tanh(a)", "__import__('numpy').tanh(a)",
        bits("head"), "does not support ufuncs",
    ),
    "the current device left alone": (
        "backend", "cupy.cuda.Device(index).use()", "pass",
        second_device, "device 1 is used while device 0 is current",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_is_caught(fault, meter, monkeypatch, tmp_path):
    module, old, new, caught, message = FAULTS[fault]
    plant(monkeypatch, module, old, new)
    with pytest.raises((TypeError, AssertionError, NotImplementedError), match=message):
        caught(meter, monkeypatch, tmp_path)


@pytest.mark.parametrize("fault", ["where= in a ufunc", "maximum.reduce"])
def test_is_caught_in_the_source(fault):
    module, old, new, _, _ = FAULTS[fault]
    source = inspect.getsource(importlib.import_module(f"nano_simcse.{module}"))
    found = test_source.faults(source.replace(old, new))
    assert len(found) == 1 and "is not in CuPy" in found[0]


def test_without_a_fault_planting_changes_nothing(meter, monkeypatch):
    masks = Masks(3, 7, 0.3)
    expected = loss_and_gradients("cpu", small_config(), small_step(), masks)
    plant(monkeypatch, "layers.layer_norm", "variance += number(eps)", "variance += number(eps)  # the same")
    got = loss_and_gradients("cpu", small_config(), small_step(), masks)
    for name, gradient in expected[1].items():
        np.testing.assert_array_equal(got[1][name], gradient)
