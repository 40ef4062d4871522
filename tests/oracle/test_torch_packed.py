"""The packed PyTorch of the benchmarks computes what the padded one computes: loss and gradients, dropout off."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install -e '.[oracle]'")

from benchmarks.torch_packed import TorchPackedBench  # noqa: E402
from benchmarks.torch_step import TorchBench  # noqa: E402
from benchmarks.workload import Size, made_up_step  # noqa: E402

pytestmark = pytest.mark.oracle

SIZE = Size("tiny", 2, 12, 3, 6)
LENGTHS = np.array([9, 3, 17, 3, 9, 32])


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def bench_of(kind, pooling):
    bench = kind(SIZE, "cpu", pooling=pooling)
    bench.model.double()
    return bench


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_packed_and_padded_take_the_same_steps(pooling):
    padded, packed = (bench_of(kind, pooling) for kind in (TorchBench, TorchPackedBench))
    padded.model.eval()
    packed.model.eval()
    for seed in range(3):  # the second and third loss depend on the gradients before them
        step = made_up_step(SIZE.batch, seed, LENGTHS)
        assert packed.train(step).item() == pytest.approx(padded.train(step).item(), rel=1e-10)
        for (name, p), q in zip(padded.model.named_parameters(), packed.model.parameters(), strict=True):
            torch.testing.assert_close(q.grad, p.grad, rtol=1e-7, atol=1e-12, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_linear_layers_see_no_padding_and_the_last_one_only_what_is_pooled(pooling):
    bench, seen = bench_of(TorchPackedBench, pooling), []
    for layer in bench.model.layers.layers:
        layer.linear1.register_forward_hook(lambda module, given, result: seen.append(len(given[0])))
    bench.train(made_up_step(SIZE.batch, 0, LENGTHS))
    tokens = 2 * LENGTHS.sum()
    assert seen == [tokens, 2 * SIZE.batch if pooling == "cls" else tokens]


def test_dropout_stands_at_three_places_of_a_layer():
    step = made_up_step(SIZE.batch, 0, LENGTHS)
    bench = bench_of(TorchPackedBench, "mean")
    bench.model.eval()
    still = bench.model(*bench.batch(step))
    bench.model.train()
    modules = [bench.model.drop] + [m for layer in bench.model.layers.layers for m in (layer.dropout1, layer.dropout2)]
    for module in modules:
        module.p = 0.0
    for layer in bench.model.layers.layers:
        layer.self_attn.dropout = 0.0
    torch.testing.assert_close(bench.model(*bench.batch(step)), still, rtol=1e-12, atol=1e-12)
    for layer in bench.model.layers.layers:
        layer.self_attn.dropout = 0.5
    assert (bench.model(*bench.batch(step)) - still).abs().max() > 1e-4
