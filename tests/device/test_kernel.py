"""The mask kernel: the C text gives the bits of the NumPy form, and compiles for a real device without one."""

import ctypes
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from nano_simcse import masks
from nano_simcse.backend import to_device, to_host

from . import kernels
from .parity import DEVICE

ARCHITECTURE = "sm_90"
WORD = (1 << 64) - 1


def random_labels(count):
    labels = np.random.default_rng(0).integers(0, WORD, count, np.uint64, endpoint=True)
    labels[:2] = 0, WORD
    return labels


def loop(labels, key, threshold, width):
    """The kernel's C text, compiled here, over every element."""
    options = {name: masks.KERNEL[name] for name in ("body", "preamble")}
    types = [kernels.parameters(masks.KERNEL[name]) for name in ("inputs", "outputs")]
    run = kernels.compiled(kernels.loop_source(*types, **options))
    if run is None:
        pytest.skip("no C compiler (cc, gcc or clang) on the path")
    keep = np.empty((len(labels), width), bool)
    pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (labels, keep)]
    numbers = ctypes.c_ulonglong(key), ctypes.c_ulonglong(threshold), ctypes.c_longlong(width)
    run(ctypes.c_longlong(keep.size), pointers[0], *numbers, pointers[1])
    return keep


@pytest.mark.parametrize("width", [1, 3, 4, 5, 64, 127])
@pytest.mark.parametrize("threshold", [0, 1, 6554, 32768, 65535])
@pytest.mark.parametrize("key", [0, 0x9E3779B97F4A7C15, WORD])
def test_the_c_text_gives_the_bits_of_the_numpy_form(width, threshold, key):
    labels = random_labels(50)
    expected = masks.keep_mask(key, labels, width, threshold)
    np.testing.assert_array_equal(loop(labels, key, threshold, width), expected)
    if 1 < threshold < 65535 and width > 3:
        assert 0 < expected.mean() < 1


def test_a_changed_constant_shows(monkeypatch):
    labels = random_labels(20)
    expected = masks.keep_mask(5, labels, 32, 32768)
    for old, new in ((">> 31", ">> 30"), ("0xFFFF", "0x7FFF"), ("column / 4", "column / 8")):
        changed = {name: text.replace(old, new) for name, text in masks.KERNEL.items()}
        assert changed != masks.KERNEL
        with monkeypatch.context() as patch:
            patch.setattr(masks, "KERNEL", changed)
            assert (loop(labels, 5, 32768, 32) != expected).mean() > 0.1


@pytest.mark.parametrize("mode", masks.MODES)
def test_masks_are_the_same_on_host_and_device_in_one_launch(mode, meter):
    step = masks.Masks(seed=11, step=4, rate=0.25, mode=mode)
    labels = masks.row_labels(np.arange(6), np.arange(6) % 3)
    expected, moved = step.keep(2, labels, 10), to_device(labels, DEVICE)
    before = meter.launches
    got = step.keep(2, moved, 10)
    if mode == "off":
        assert got is None is expected and meter.launches == before
        return
    np.testing.assert_array_equal(to_host(got), expected)
    assert meter.launches - before == (2 if mode == "shared" else 1)


def find_nvrtc():
    """The library of the package nvidia-cuda-nvrtc, or None."""
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations) if spec else []
    found = sorted(path for folder in folders for path in Path(folder).rglob("libnvrtc.so.*"))
    return ctypes.CDLL(str(found[-1])) if found else None


def compile_cubin(nvrtc, source, *options):
    """Machine code of a CUDA text for ARCHITECTURE; AssertionError with the log where it does not compile."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None) == 0
    options = [option.encode() for option in (f"--gpu-architecture={ARCHITECTURE}", *options)]
    failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    kind = ("nvrtcGetProgramLogSize", "nvrtcGetProgramLog") if failed else ("nvrtcGetCUBINSize", "nvrtcGetCUBIN")
    assert getattr(nvrtc, kind[0])(program, ctypes.byref(size)) == 0
    text = ctypes.create_string_buffer(size.value)
    assert getattr(nvrtc, kind[1])(program, text) == 0
    assert not failed, text.value.decode()
    return text.raw


@pytest.fixture
def nvrtc():
    library = find_nvrtc()
    if library is None:
        pytest.skip("NVRTC is not installed (pip install nvidia-cuda-nvrtc)")
    return library


def test_the_kernel_compiles_for_a_device(nvrtc):
    types = [kernels.parameters(masks.KERNEL[name]) for name in ("inputs", "outputs")]
    options = {name: masks.KERNEL[name] for name in ("body", "preamble")}
    cubin = compile_cubin(nvrtc, kernels.loop_source(*types, **options, cuda=True))
    assert cubin.startswith(b"\x7fELF") and b"run" in cubin
    broken = {**options, "body": options["body"].replace("column", "colum", 1)}
    with pytest.raises(AssertionError, match="column"):
        compile_cubin(nvrtc, kernels.loop_source(*types, **broken, cuda=True))


def real_kernel():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed (pip install cupy-cuda13x)")
    names = ("inputs", "outputs", "body", "name")
    return cupy.ElementwiseKernel(*(masks.KERNEL[name] for name in names), preamble=masks.KERNEL["preamble"])


def test_cupy_accepts_the_declaration():
    kernel = real_kernel()
    assert (kernel.nin, kernel.nout, kernel.name) == (4, 1, "keep_mask")
    assert [p.raw for p in kernel.in_params] == [True, False, False, False]


def test_the_source_that_cupy_makes_of_it_compiles_for_a_device(nvrtc):
    """CuPy's own text around the body, which it would make at the first launch, and CuPy's own headers."""
    kernel = real_kernel()
    import cupy
    from cupy._core import _carray, _kernel, _scalar

    if not hasattr(_kernel, "_get_elementwise_kernel_code"):
        pytest.skip(f"CuPy {cupy.__version__} makes its sources elsewhere")
    array, indexer, scalar = 1, 2, 3
    info = _kernel._ArgInfo
    arguments = (
        info(array, cupy.ndarray, np.uint64, 1, True, True),
        *(info(scalar, _scalar.CScalar, kind, 0, True, True) for kind in (np.uint64, np.uint64, np.int64)),
        info(array, cupy.ndarray, np.bool_, 1, True, True),
        info(indexer, _carray.Indexer, None, 1, True, True),
    )
    source = _kernel._get_elementwise_kernel_code(
        arguments, _kernel._TypeMap(()), kernel.params, kernel.operation, kernel.name, kernel.preamble
    )
    include = Path(cupy.__file__).parent / "_core" / "include"
    folders = [include, *(include / "cupy" / "_cccl" / name for name in ("libcudacxx", "thrust", "cub"))]
    options = ["--std=c++17", "-ftz=true", "-DCUPY_JITIFY_MODE=0", *(f"-I{folder}" for folder in folders)]
    headers = "#include <cupy/complex.cuh>\n#include <cupy/carray.cuh>\n"
    cubin = compile_cubin(nvrtc, headers + (source if isinstance(source, str) else source[0]), *options)
    assert cubin.startswith(b"\x7fELF") and b"keep_mask" in cubin
