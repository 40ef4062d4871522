"""The number of kernels a training step of the small model launches."""

from benchmarks import launches
from benchmarks.workload import Size


def test_a_step_of_the_small_model_stays_below_the_limit(capsys):
    assert launches.main([]) == 0
    output = capsys.readouterr().out
    total = int(output.split()[-1])
    assert 300 < total < launches.LIMIT == 600
    assert "layers.attention" in output and "a step" in output


def test_launches_grow_with_layers_and_not_with_rows():
    def total(layers, batch):
        return sum(launches.count_step(Size("", layers, 16, 2, batch)).values())

    assert total(1, 24) == total(1, 48)
    assert 100 < total(2, 24) - total(1, 24) < 250
