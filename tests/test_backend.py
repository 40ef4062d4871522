"""Devices and their errors (with a small stand-in for CuPy), scatter_add, blocks."""

import subprocess
import sys
import types

import numpy as np
import pytest
from scipy import special

from nano_simcse import backend
from nano_simcse.backend import (
    DEVICE_LENGTH_MULTIPLE,
    array_module,
    device_of,
    length_multiple,
    on_host,
    resolve_device,
    row_blocks,
    scatter_add,
    to_device,
    to_host,
)
from nano_simcse.errors import DeviceError


class RuntimeFault(RuntimeError):
    pass


class OutOfMemory(MemoryError):
    pass


class Device:
    entered, current = (), None

    def __init__(self, index=0):
        self.index = index

    def __enter__(self):
        Device.entered += (self.index,)

    def __exit__(self, *exc):
        return False

    def use(self):
        Device.current = self.index


def fake_cupy(driver=13000, count=1, fault=None):
    """A module with the names the probe uses; `fault` is raised by the first array that is made."""
    cupy = types.ModuleType("cupy")

    def device_count():
        if isinstance(count, Exception):
            raise count
        return count

    def ones(shape, dtype):
        if fault is not None:
            raise fault
        return np.ones(shape, dtype)

    runtime = types.SimpleNamespace(
        driverGetVersion=lambda: driver, getDeviceCount=device_count, CUDARuntimeError=RuntimeFault
    )
    memory = types.SimpleNamespace(OutOfMemoryError=OutOfMemory)
    cupy.cuda = types.SimpleNamespace(runtime=runtime, memory=memory, Device=Device)
    cupy.ndarray = type("ndarray", (), {})
    cupy.ones = ones
    cupy.asarray = lambda x: ("on device", x)
    cupy.asnumpy = lambda x: "back on host"
    return cupy


def test_cpu_needs_no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert resolve_device("cpu") == "cpu"


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "cuda:-1", "CPU", "cuda:0 ", ""])
def test_an_unknown_device_is_named(name):
    with pytest.raises(DeviceError, match="is not known; expected cpu, cuda or cuda:i"):
        resolve_device(name)


def test_without_cupy_the_extras_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # makes `import cupy` fail
    with pytest.raises(DeviceError, match=r"--device cuda needs CuPy.*nano_simcse\[cuda13\].*nano_simcse\[cuda12\]"):
        resolve_device("cuda")


@pytest.mark.parametrize(
    ("options", "device", "message"),
    [
        ({"driver": 0}, "cuda", r"--device cuda needs an NVIDIA driver, and none is installed"),
        ({"count": 0}, "cuda", r"asks for device 0, but only 0 CUDA device\(s\) are visible"),
        ({"count": 2}, "cuda:2", r"--device cuda:2 asks for device 2, but only 2 CUDA device"),
        ({"count": RuntimeFault("cudaErrorNoDevice")}, "cuda", r"does not answer: cudaErrorNoDevice"),
        ({"fault": RuntimeFault("insufficient driver")}, "cuda", r"does not answer: insufficient driver"),
        ({"fault": OutOfMemory("0 bytes free")}, "cuda:0", r"--device cuda:0 has no free memory left \(0 bytes free\)"),
        ({"fault": ImportError("libcublasLt")}, "cuda", r"lacks a CUDA library \(libcublasLt\).*\[ctk\]"),
        ({"fault": RuntimeError("nvrtc not found")}, "cuda", r"lacks a CUDA library \(nvrtc not found\)"),
    ],
)
def test_each_missing_part_is_one_clear_sentence(monkeypatch, options, device, message):
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(**options))
    with pytest.raises(DeviceError, match=message) as caught:
        resolve_device(device)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None  # one sentence, no chained traceback


def test_a_working_device_gets_its_canonical_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(count=2))
    monkeypatch.setattr(Device, "current", None)
    assert resolve_device("cuda") == "cuda:0" and Device.current == 0
    assert resolve_device("cuda:1") == "cuda:1" and Device.current == 1


def test_the_arrays_decide_the_module(monkeypatch):
    cupy = fake_cupy()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    device_array = cupy.ndarray()
    assert array_module(device_array) is cupy and not on_host(device_array)
    assert array_module(np.zeros(2)) is np and on_host(np.zeros(2)) and on_host(1.5)
    assert to_host(device_array) == "back on host"
    device_array.device = types.SimpleNamespace(id=2)
    assert (device_of(device_array), device_of(np.zeros(2))) == ("cuda:2", "cpu")


def test_rows_are_rounded_up_in_length_only_on_a_device():
    assert length_multiple("cpu") == 1
    assert length_multiple("cuda:0") == DEVICE_LENGTH_MULTIPLE == 16


def test_data_crosses_only_where_asked(monkeypatch):
    x = np.arange(3)
    assert to_device(x) is x and to_host(x) is x
    assert to_host([1, 2]).tolist() == [1, 2]
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(count=4))
    monkeypatch.setattr(Device, "entered", ())
    assert to_device(x, "cuda:3") == ("on device", x)
    assert Device.entered == (3,)


def test_importing_the_package_does_not_import_cupy():
    code = (
        "import sys, nano_simcse.encoder, nano_simcse.losses, nano_simcse.optim, nano_simcse.geometry;"
        "print('cupy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- scatter_add ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("id_dtype", [np.int32, np.int64])
def test_scatter_add_accumulates_duplicates(dtype, id_dtype):
    generator = np.random.default_rng(0)
    ids = generator.integers(0, 9, 200).astype(id_dtype)
    rows = generator.standard_normal((200, 4)).astype(dtype)
    target = generator.standard_normal((12, 4)).astype(dtype)
    expected = target.copy()
    np.add.at(expected, ids, rows)
    scatter_add(target, ids, rows)
    np.testing.assert_allclose(
        target, expected, rtol=1e-12 if dtype == np.float64 else 2e-5, atol=1e-5 * (dtype == np.float32)
    )
    assert target.dtype == dtype


def test_scatter_add_by_hand():
    target = np.ones((3, 1))
    scatter_add(target, np.array([2, 0, 2]), np.array([[1.0], [10.0], [100.0]]))
    assert target.tolist() == [[11.0], [1.0], [102.0]]
    scatter_add(target, np.zeros(0, int), np.zeros((0, 1)))
    assert target.tolist() == [[11.0], [1.0], [102.0]]


def test_scatter_add_repeats_its_bits():
    generator = np.random.default_rng(0)
    ids, rows = generator.integers(0, 9, 500), generator.standard_normal((500, 3)).astype(np.float32)
    results = []
    for _ in range(2):
        target = np.zeros((9, 3), np.float32)
        scatter_add(target, ids, rows)
        results.append(target)
    np.testing.assert_array_equal(*results)


# --- blocks, erf ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0, 4), (1, 5), (10, 7), (3, 1000), (1000,)])
@pytest.mark.parametrize("elements", [1, 64, 10_000])
def test_blocks_cover_every_row_once(shape, elements):
    x = np.zeros(shape)
    blocks = row_blocks(x, elements)
    assert [i for block in blocks for i in range(*block.indices(shape[0]))] == list(range(shape[0]))
    row = max(1, int(np.prod(shape[1:])))
    assert all((block.stop - block.start) * row <= max(elements, row) for block in blocks)


def test_a_device_array_is_one_block(monkeypatch):
    monkeypatch.setattr(backend, "on_host", lambda x: False)
    assert row_blocks(np.zeros((10, 10)), 5) == [slice(0, 10)]


def test_erf_keeps_the_precision():
    x = np.linspace(-3, 3, 7)
    np.testing.assert_array_equal(backend.erf(x), special.erf(x))
    assert backend.erf(x.astype(np.float32)).dtype == np.float32


def test_keeping_freed_memory_answers_yes_or_no():
    assert backend.keep_freed_memory() in (True, False)


def test_keeping_freed_memory_does_nothing_elsewhere(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert backend.keep_freed_memory.__wrapped__() is False


FAULTS_OF_A_THREAD = """
import resource
import threading
import numpy as np
from nano_simcse.backend import keep_freed_memory

def faults_after(rounds):
    for _ in range(rounds):
        kept = [np.ones(1 << 18) for _ in range(20)]  # 40 MB, freed when the next ones are there
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if keep_freed_memory():
    thread = threading.Thread(target=lambda: print(faults_after(3), faults_after(10)))
    thread.start()
    thread.join()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of glibc")
def test_a_thread_that_frees_memory_gets_it_back_without_page_faults():
    """Else each of the ten rounds takes thousands."""
    told = subprocess.run([sys.executable, "-c", FAULTS_OF_A_THREAD], capture_output=True, text=True, check=True)
    if not told.stdout:
        pytest.skip("the C library has no such setting")
    before, after = map(int, told.stdout.split())
    assert after - before < 2000
