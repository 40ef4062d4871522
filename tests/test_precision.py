"""A float32 training step makes no float64 array, not even a temporary one.

Two watchers look on. The arrays are of a subclass that inspects every operand and every result of every ufunc and
every view, which sees temporaries; a line tracer inspects the local variables of every function of the package,
which sees arrays made from nothing. The last tests plant a float64 of each kind and see it caught.
"""

import sys
from dataclasses import replace

import numpy as np
import pytest
from cases import TINY, random_parameters, random_rows, simcse_step, view_batch
from test_composed_step import masked_lm_step

from nano_simcse import encoder
from nano_simcse.layers import POOLINGS
from nano_simcse.masks import Masks
from nano_simcse.optim import SGD, Adam, AdamW, clip_factor, clip_global_norm, global_norm

STEP_MASKS = Masks(1, 2, 0.3)
ROWS = random_rows([4, 2, 5, 4], TINY.vocab_size, seed=7)


class Float64Found(AssertionError):
    pass


def refuse_float64(value, where):
    if isinstance(value, np.ndarray | np.generic) and value.dtype == np.float64:
        raise Float64Found(f"float64 of shape {value.shape} {where}")


class Watched(np.ndarray):
    def __array_finalize__(self, source):
        refuse_float64(self, "was made")

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **options):
        for value in (*inputs, *out):
            refuse_float64(value, f"enters {ufunc.__name__}")

        def plain(values):
            return tuple(v.view(np.ndarray) if isinstance(v, Watched) else v for v in values)

        if out:
            options["out"] = plain(out)
        result = getattr(ufunc, method)(*plain(inputs), **options)
        refuse_float64(result, f"leaves {ufunc.__name__}")
        if out:
            return out[0]
        return result.view(Watched) if isinstance(result, np.ndarray) else result


def watch_locals(f):
    """Call f with every local variable of the package's functions inspected after every line."""

    def tracer(frame, event, argument):
        if not frame.f_globals.get("__name__", "").startswith("nano_simcse"):
            return None
        for name, value in frame.f_locals.items():
            refuse_float64(value, f"is {name} in {frame.f_code.co_qualname}")
        refuse_float64(argument, f"comes out of {frame.f_code.co_qualname}")
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        return f()
    finally:
        sys.settrace(before)


def watched_parameters(config):
    params = random_parameters(config, scale=0.3, dtype=np.float32)
    return type(params)(params.shapes, params.flat.view(Watched))


def train_step(config=TINY, optimiser=AdamW, masks=STEP_MASKS, **options):
    params = watched_parameters(config)
    batch = view_batch(ROWS, options.get("views", 2))
    update = optimiser(params)

    def step():
        loss, backward = simcse_step(params, config, batch, masks, **options)
        gradients = backward()
        norm = clip_global_norm(gradients, 1.0)
        update.step(gradients, 1e-3)
        return loss, norm, gradients

    loss, norm, gradients = watch_locals(step)
    assert loss.dtype == norm.dtype == gradients.flat.dtype == params.flat.dtype == np.float32
    assert isinstance(gradients.flat, Watched)  # the watch was not lost on the way
    assert np.isfinite(gradients.flat).all() and gradients.flat.any()


@pytest.mark.parametrize("pooling", POOLINGS)
def test_step_of_every_pooling(pooling):
    train_step(pooling=pooling)


def test_step_with_every_option_of_the_loss():
    train_step(
        replace(TINY, gelu="tanh"),
        views=3,
        log_weight=0.7,
        symmetric=True,
        exclude=np.eye(4, 8, k=1, dtype=bool),
        temperature=0.05,
    )


@pytest.mark.parametrize("optimiser", [SGD, lambda p: SGD(p, 0.9), Adam, lambda p: AdamW(p, weight_decay=0.01)])
def test_step_of_every_optimiser(optimiser):
    train_step(optimiser=optimiser)


@pytest.mark.parametrize("masks", [None, Masks(1, 2, 0.0), Masks(1, 2, 0.3, "shared"), Masks(1, 2, 0.3, "off")])
def test_step_in_every_mask_mode(masks):
    train_step(masks=masks)


def test_masked_lm_step():
    config = replace(TINY, head=False, mlm=True)
    params, batch = watched_parameters(config), view_batch(ROWS, multiple=4)
    places, targets = np.array([1, 4, 5, 11, 20]), np.array([3, 3, 0, 10, 7])
    gradients = watch_locals(lambda: masked_lm_step(params, config, batch, STEP_MASKS, places, targets)[1]())
    assert gradients.flat.dtype == np.float32 and isinstance(gradients.flat, Watched)


# --- the watchers see what they should --------------------------------------------------------------------------


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_the_update_that_clips_stays_in_float32(precision):
    class Clipping(AdamW):
        def step(self, gradients, lr):
            super().step(gradients, lr, factor=precision(clip_factor(global_norm(gradients), 1.0)))

    if precision == np.float32:
        train_step(optimiser=Clipping)
    else:
        with pytest.raises(Float64Found, match="is factor in AdamW"):
            train_step(optimiser=Clipping)


def test_a_float64_scalar_in_a_product_is_caught(monkeypatch):
    honest = encoder.gelu

    def broken(*arguments, **options):
        y, backward = honest(*arguments, **options)
        return (y * np.float64(1)).astype(np.float32), backward

    monkeypatch.setattr(encoder, "gelu", broken)
    with pytest.raises(Float64Found, match=r"float64 of shape \(\) enters multiply"):
        train_step()


def test_a_float64_operand_of_an_update_in_place_is_caught(monkeypatch):
    honest = encoder.linear

    def broken(x, weight, bias):
        y, backward = honest(x, weight, bias)
        y += np.zeros(y.shape[1])  # NumPy casts the sum back to float32 without a word
        return y, backward

    monkeypatch.setattr(encoder, "linear", broken)
    with pytest.raises(Float64Found, match=r"enters add"):
        train_step()


def test_a_float64_array_in_a_backward_is_caught(monkeypatch):
    honest = encoder.layer_norm

    def broken(*arguments):
        y, backward = honest(*arguments)
        return y, lambda dy: backward(dy.astype(np.float64).astype(np.float32))

    monkeypatch.setattr(encoder, "layer_norm", broken)
    with pytest.raises(Float64Found, match=r"was made"):
        train_step()


def test_a_float64_local_of_the_package_is_caught(monkeypatch):
    # the mask's scale as a NumPy float64 scalar, which would turn every product with it into float64
    monkeypatch.setattr(Masks, "scale", property(lambda self: np.float64(1.25)))
    with pytest.raises(Float64Found, match=r"is scale in"):
        train_step()
