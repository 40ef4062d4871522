"""What a user sees where the device does not work: one sentence, exit code 2, nothing else.

The sentences themselves are tested in test_backend.py; here they come out of the command line.
"""

import sys

import pytest
from tiny import TINY, write_sentences

from nano_simcse.cli import main

from .library import installed
from .meter import OutOfMemory, RuntimeFault


def raising(error):
    def fail(*arguments, **keywords):
        raise error

    return fail


def no_driver(cupy):
    cupy.cuda.runtime.driverGetVersion = lambda: 0


def no_device(cupy):
    cupy.cuda.runtime.getDeviceCount = raising(RuntimeFault("cudaErrorNoDevice: no CUDA-capable device is detected"))


def old_driver(cupy):
    text = "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version"
    cupy.cuda.runtime.getDeviceCount = raising(RuntimeFault(text))


def no_libraries(cupy):
    cupy.ones = raising(ImportError("libcublas.so.13: cannot open shared object file"))


def no_compiler(cupy):
    cupy.ones = raising(RuntimeError('Failure finding "libnvrtc.so"'))


def no_memory(cupy):
    cupy.ones = raising(OutOfMemory("Out of memory allocating 512 bytes (allocated so far: 0 bytes)."))


CASES = {
    no_driver: "needs an NVIDIA driver",
    no_device: "cudaErrorNoDevice",
    old_driver: "does not answer: cudaErrorInsufficientDriver",
    no_libraries: "lacks a CUDA library (libcublas.so.13",
    no_compiler: "lacks a CUDA library (Failure finding",
    no_memory: "has no free memory left",
}


def command(tmp_path, capsys, device="cuda"):
    """(exit code, lines on standard error, lines on standard output) of `nano-simcse train --device ...`."""
    options = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
    text = write_sentences(tmp_path / "text.txt")
    code = main(["train", str(text), "--out", str(tmp_path / "run"), "--device", device, *options])
    captured = capsys.readouterr()
    return code, captured.err.splitlines(), captured.out.splitlines()


@pytest.mark.parametrize(("broken", "message"), CASES.items(), ids=lambda x: getattr(x, "__name__", ""))
def test_a_device_that_does_not_work_is_one_sentence(tmp_path, capsys, broken, message):
    with installed():
        broken(sys.modules["cupy"])
        code, errors, output = command(tmp_path, capsys)
    assert code == 2 and output == [] and len(errors) == 1
    assert errors[0].startswith("nano-simcse: --device cuda ") and message in errors[0]
    assert not (tmp_path / "run").exists()


def test_without_cupy(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    code, errors, output = command(tmp_path, capsys)
    assert code == 2 and output == [] and len(errors) == 1 and "needs CuPy" in errors[0]


def test_memory_that_runs_out_on_the_way_is_one_sentence(tmp_path, capsys):
    with installed() as meter:
        meter.memory = 500  # launches: in the first steps
        code, errors, _ = command(tmp_path, capsys)
    assert code == 2 and len(errors) == 1
    assert errors[0].startswith("nano-simcse: out of memory") and "Out of memory allocating" in errors[0]


def test_a_device_that_works_is_used(tmp_path, capsys):
    with installed() as meter:
        code, errors, _ = command(tmp_path, capsys)
        assert meter.launches > 1000
    assert code == 0 and errors == []
