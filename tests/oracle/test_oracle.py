"""Every layer, loss, optimiser and the whole step against torch autograd in float64 (pip install -e '.[oracle]')."""

import math
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install -e '.[oracle]'")

from cases import (  # noqa: E402
    MASKS,
    TINY,
    padded_masks,
    random_parameters,
    random_rows,
    simcse_step,
    view_batch,
    view_labels,
)
from test_composed_step import masked_lm_step  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch_encoder import TorchEncoder, info_nce, pad, pool  # noqa: E402

from nano_simcse import layers, losses  # noqa: E402
from nano_simcse.encoder import EncoderConfig  # noqa: E402
from nano_simcse.masks import Masks  # noqa: E402
from nano_simcse.optim import SGD, Adam, AdamW, clip_global_norm  # noqa: E402
from nano_simcse.parameters import Parameters  # noqa: E402

pytestmark = pytest.mark.oracle

CONFIG = EncoderConfig(vocab_size=30, layers=2, width=12, heads=3, feed_forward=20, max_positions=9, head=True)
ROWS = random_rows([4, 7, 2, 7, 5], 30, seed=4)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def relative(value, reference):
    scale = np.abs(reference).max()
    return np.abs(value - reference).max() / (scale if scale > 0 else 1.0)


def twin(config):
    sizes = (config.vocab_size, config.layers, config.width, config.heads, config.feed_forward, config.max_positions)
    return TorchEncoder(*sizes, config.types, config.eps, config.gelu, config.mlm)


def torch_masks(masks, config, rows, views):
    if masks is None:
        return {}
    labels = view_labels(len(rows), views)
    if masks.mode == "shared":  # one mask for all views of a sentence: that of its first view
        labels = np.tile(labels[: len(rows)], views)
        masks = replace(masks, mode="independent")
    keep = padded_masks(masks, labels, max(map(len, rows)), config)
    return {"keep": [torch.from_numpy(keep[site]) for site in sorted(keep)], "scale": masks.scale}


def torch_step(params, config, rows, masks, *, pooling="cls", temperature=0.5, views=2, **options):
    model = twin(config).load(params)
    ids, real = pad(rows * views)
    z = torch.tanh(model.head(pool(model(ids, real, **torch_masks(masks, config, rows, views)), real, pooling)))
    n = len(rows)
    loss = info_nce(z[:n], z[n : 2 * n], temperature, z[2 * n :] if views > 2 else None, **options)
    loss.backward()
    return loss.item(), model.gradients()


STEPS = {
    **{f"pooling {name}": {"pooling": name} for name in layers.POOLINGS},
    "temperature .05": {"temperature": 0.05},
    "symmetric": {"symmetric": True},
    "hard negatives": {"views": 3},
    "everything": {
        "views": 3,
        "log_weight": math.log(2),
        "symmetric": True,
        "exclude": np.eye(5, 10, k=1, dtype=bool),
        "pooling": "mean",
    },
}


@pytest.mark.parametrize("form", ["erf", "tanh"])
@pytest.mark.parametrize("masks", [None, MASKS, Masks(5, 3, 0.3, "shared")], ids=["off", "dropout", "shared"])
@pytest.mark.parametrize("name", STEPS)
def test_whole_step(name, masks, form):
    config, options = replace(CONFIG, gelu=form), STEPS[name]
    params = random_parameters(config, scale=0.4)
    batch = view_batch(ROWS, options.get("views", 2))
    loss, backward = simcse_step(params, config, batch, masks, **options)
    gradients = backward()
    expected_loss, expected = torch_step(params, config, ROWS, masks, **options)
    assert float(loss) == pytest.approx(expected_loss, abs=0, rel=1e-12)
    assert set(expected) == set(gradients)
    worst = {key: relative(gradients[key], expected[key]) for key in gradients}
    assert max(worst.values()) <= 1e-12, worst  # measured: 8e-15


def test_masked_lm_through_the_encoder():
    config = replace(CONFIG, mlm=True)
    params, batch = random_parameters(config, seed=2, scale=0.4), view_batch(ROWS)
    row, place = np.array([0, 1, 3, 7, 9, 9]), np.array([1, 6, 0, 1, 4, 2])
    targets = np.array([3, 29, 0, 10, 7, 7])
    loss, backward = masked_lm_step(params, config, batch, MASKS, batch.first[row] + place, targets)
    model = twin(config).load(params)
    ids, real = pad(ROWS * 2)
    states = model(ids, real, **torch_masks(MASKS, config, ROWS, 2))
    expected = functional.cross_entropy(model.predict_tokens(states[-1][row, place]), torch.from_numpy(targets))
    expected.backward()
    assert float(loss) == pytest.approx(expected.item(), abs=0, rel=1e-12)
    gradients, reference = backward(), model.gradients()
    worst = {key: relative(gradients[key], reference[key]) for key in gradients}
    assert max(worst.values()) <= 1e-12, worst  # measured: 8e-15


def test_padding_in_torch_changes_nothing():
    """The oracle itself: a longer padding gives the same loss and gradients."""
    params = random_parameters(CONFIG, scale=0.4)
    one = torch_step(params, CONFIG, ROWS, None, pooling="mean")
    alone = [torch_step(params, CONFIG, [row, row], None, pooling="mean") for row in ROWS]
    assert all(loss == pytest.approx(math.log(2), abs=0, rel=1e-12) for loss, _ in alone)
    assert one[0] > 0


# --- layers -----------------------------------------------------------------------------------------------------


def compare(ours, theirs, *arrays, limit=1e-12):
    y, backward = ours(*arrays)
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    expected = theirs(*tensors)
    dy = draw(*y.shape, seed=77)
    expected.backward(torch.tensor(dy))
    assert relative(y, expected.detach().numpy()) <= limit
    gradients = backward(dy)
    for gradient, tensor in zip(gradients if isinstance(gradients, tuple) else (gradients,), tensors, strict=True):
        assert relative(gradient, tensor.grad.numpy()) <= limit


def test_layer_norm():
    def theirs(x, gamma, beta):
        return functional.layer_norm(x, (9,), gamma, beta, 1e-12)

    compare(layers.layer_norm, theirs, draw(20, 9), draw(9, seed=1), draw(9, seed=2))


@pytest.mark.parametrize(("form", "approximate"), [("erf", "none"), ("tanh", "tanh")])
def test_gelu(form, approximate):
    compare(lambda x: layers.gelu(x, form), lambda x: functional.gelu(x, approximate=approximate), 3 * draw(40, 9))


@pytest.mark.parametrize(("form", "approximate", "limit"), [("erf", "none", 1e-6), ("tanh", "tanh", 2e-6)])
def test_gelu_in_float32_against_torch_in_float64(form, approximate, limit):
    x = np.linspace(-10, 10, 100_001).astype(np.float32)
    tensor = torch.tensor(x.astype(np.float64), requires_grad=True)
    y, backward = layers.gelu(x, form)
    expected = functional.gelu(tensor, approximate=approximate)
    expected.backward(torch.ones_like(tensor))
    assert np.abs(y - expected.detach().numpy()).max() < limit
    assert np.abs(backward(np.ones_like(x)) - tensor.grad.numpy()).max() < limit


def test_linear_head_normalize_softmax_embedding():
    compare(layers.linear, lambda x, w, b: functional.linear(x, w.T, b), draw(7, 5), draw(5, 3), draw(3))
    compare(layers.tanh_head, lambda x, w, b: torch.tanh(x @ w + b), draw(7, 5), draw(5, 3, seed=1), draw(3))
    compare(layers.normalize, lambda x: functional.normalize(x, dim=1), 3 * draw(7, 5))
    compare(layers.softmax, lambda s: torch.softmax(s, -1), 3 * draw(4, 7, 5))
    ids = np.array([1, 3, 1, 1, 0])
    compare(lambda t: layers.embedding(t, ids), lambda t: functional.embedding(torch.tensor(ids), t), draw(5, 4))


def test_attention_with_padding():
    real = np.arange(6) < np.array([6, 4, 1])[:, None]

    def theirs(q, k, v):
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=torch.tensor(real)[:, None, None, :])

    arrays = [draw(3, 2, 6, 5, seed=s) for s in range(3)]
    compare(layers.attention, functional.scaled_dot_product_attention, *arrays)
    compare(lambda q, k, v: layers.attention(q, k, v, real), theirs, *arrays)


# --- losses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.05, 1.0])
@pytest.mark.parametrize(
    ("k", "options"),
    [
        (0, {}),
        (0, {"symmetric": True}),
        (0, {"exclude": np.eye(6, k=2, dtype=bool), "symmetric": True}),
        (1, {"log_weight": 0.7}),
        (3, {"log_weight": -0.7, "symmetric": True, "exclude": np.eye(6, 24, k=7, dtype=bool)}),
    ],
)
def test_info_nce(k, options, temperature):
    arrays = [draw(6, 5, seed=1), draw(6, 5, seed=2)] + ([draw(6 * k, 5, seed=3)] if k else [])
    loss, backward = losses.info_nce(*arrays[:2], temperature, hard_negatives=arrays[2] if k else None, **options)
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    expected = info_nce(*tensors[:2], temperature, tensors[2] if k else None, **options)
    expected.backward()
    assert float(loss) == pytest.approx(expected.item(), abs=0, rel=1e-12)
    for gradient, tensor in zip(backward(), tensors, strict=True):
        assert relative(gradient, tensor.grad.numpy()) <= 1e-12


def test_masked_lm():
    logits, targets = 3 * draw(6, 9), np.array([0, 8, 3, 3, 1, 2])
    tensor = torch.tensor(logits, requires_grad=True)
    expected = functional.cross_entropy(tensor, torch.tensor(targets))
    expected.backward()
    loss, backward = losses.masked_lm(logits, targets)
    assert float(loss) == pytest.approx(expected.item(), abs=0, rel=1e-14)
    assert relative(backward(), tensor.grad.numpy()) <= 1e-14


# --- optimisers -------------------------------------------------------------------------------------------------

OPTIMISERS = {
    "SGD": (SGD, lambda p: torch.optim.SGD(p, lr=0.05)),
    "momentum": (lambda p: SGD(p, 0.9), lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)),
    "Adam": (Adam, lambda p: torch.optim.Adam(p, lr=0.05)),
    "Adam eps": (
        lambda p: Adam(p, (0.8, 0.99), 1e-3),
        lambda p: torch.optim.Adam(p, lr=0.05, betas=(0.8, 0.99), eps=1e-3),
    ),
    "AdamW": (lambda p: AdamW(p, weight_decay=0.1), lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.1)),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_ten_steps_of_an_optimiser(name):
    ours, theirs = OPTIMISERS[name]
    params = Parameters({"a": (3, 4), "b": (5,)}, draw(17))
    tensors = [torch.tensor(params[n].copy(), requires_grad=True) for n in ("a", "b")]
    optimiser, reference = ours(params), theirs(tensors)
    for step in range(10):
        gradients = Parameters(params.shapes, draw(17, seed=step + 1) * 10.0 ** (step - 5))
        for n, tensor in zip(("a", "b"), tensors, strict=True):
            tensor.grad = torch.tensor(gradients[n].copy())
        optimiser.step(gradients, 0.05)
        reference.step()
    for n, tensor in zip(("a", "b"), tensors, strict=True):
        np.testing.assert_allclose(params[n], tensor.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_clipping(limit):
    gradients = Parameters({"a": (3, 4), "b": (5,)}, draw(17))
    tensors = [torch.zeros(gradients[n].shape, dtype=torch.double, requires_grad=True) for n in ("a", "b")]
    for n, tensor in zip(("a", "b"), tensors, strict=True):
        tensor.grad = torch.tensor(gradients[n].copy())
    norm = torch.nn.utils.clip_grad_norm_(tensors, limit)
    assert float(clip_global_norm(gradients, limit)) == pytest.approx(norm.item(), abs=0, rel=1e-14)
    for n, tensor in zip(("a", "b"), tensors, strict=True):
        np.testing.assert_allclose(gradients[n], tensor.grad.numpy(), rtol=3e-6)  # torch divides by norm + 1e-6


def test_tiny_case_of_the_difference_checks_agrees_with_torch_too():
    rows = random_rows([4, 2, 5, 4], TINY.vocab_size, seed=7)
    params = random_parameters(TINY)
    loss, backward = simcse_step(params, TINY, view_batch(rows), MASKS)
    expected_loss, expected = torch_step(params, TINY, rows, MASKS)
    assert float(loss) == pytest.approx(expected_loss, abs=0, rel=1e-12)
    gradients = backward()
    assert max(relative(gradients[key], expected[key]) for key in gradients) <= 1e-12
