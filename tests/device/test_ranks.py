"""Several ranks on the stand-in for CuPy, simulated by threads: what they send passes through the host, and counts."""

import pytest
from simulated_mpi import simulate

from nano_simcse.backend import to_host
from nano_simcse.masks import Masks
from nano_simcse.parallel import Workers
from nano_simcse.training.step import Objective, contrastive_step

from .array import DeviceArray
from .parity import DEVICE, encoder_on, in_device_order, small_config, small_step


@pytest.mark.parametrize("views", [2, 3])
def test_a_step_of_two_ranks_has_the_bits_of_two_ranks_on_numpy(views, monkeypatch, meter):
    in_device_order(monkeypatch)
    step, masks = small_step(views, exclude=True), Masks(3, 5, 0.1)

    def loss_and_gradients(device):
        def one(ranks):
            encoder = encoder_on(device, small_config())
            gradients = [encoder.params.zeros_like()]
            with Workers(1, ranks) as workers:
                loss, z = contrastive_step(encoder, step, Objective("mean", 0.1), masks, gradients, workers)
            ranks.all_reduce(gradients[0].flat)
            assert device == "cpu" or all(isinstance(x, DeviceArray) for x in (loss, z, gradients[0].flat))
            return [to_host(x).tobytes() for x in (loss, z, gradients[0].flat)]

        return simulate(2, one)

    host, device = loss_and_gradients("cpu"), loss_and_gradients(DEVICE)
    assert host[0] == host[1] and device[0] == device[1]
    assert host == device
