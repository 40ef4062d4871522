"""The losses with a learned scale against PyTorch's own cross-entropy, log-sigmoid and clamp."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional  # noqa: E402

from nano_simcse.losses import clip_loss, sigmoid_loss  # noqa: E402

pytestmark = pytest.mark.oracle


def inputs():
    generator = np.random.default_rng(0)
    return generator.standard_normal((7, 5)), generator.standard_normal((7, 5))


def tensors(*values):
    return [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in values]


def compare(mine, loss, leaves):
    loss.backward()
    assert float(mine[0]) == pytest.approx(loss.item(), abs=0, rel=1e-12)
    for gradient, leaf in zip(mine[1](), leaves, strict=True):
        np.testing.assert_allclose(gradient, leaf.grad.numpy(), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("log_scale", [1.0, 2.5])
def test_clip_loss_is_two_cross_entropies_at_a_clamped_scale(log_scale):
    q, k = inputs()
    leaves = tensors(q, k, log_scale)
    z = leaves[2].exp().clamp(max=10.0) * functional.normalize(leaves[0]) @ functional.normalize(leaves[1]).T
    labels = torch.arange(7)
    loss = (functional.cross_entropy(z, labels) + functional.cross_entropy(z.T, labels)) / 2
    compare(clip_loss(q, k, log_scale, max_scale=10.0), loss, leaves)


def test_sigmoid_loss_is_a_sum_of_log_sigmoids():
    q, k = inputs()
    leaves = tensors(q, k, math.log(10), -3.0)
    z = leaves[2].exp() * functional.normalize(leaves[0]) @ functional.normalize(leaves[1]).T + leaves[3]
    loss = -functional.logsigmoid((2 * torch.eye(7) - 1) * z).sum() / 7
    compare(sigmoid_loss(q, k, math.log(10), -3.0), loss, leaves)
