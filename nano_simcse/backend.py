"""Where arrays live: NumPy on the host, CuPy on a CUDA device. The only file that knows the difference.

Every numerical function of the package starts with ``xp = array_module(x)`` and then reads as NumPy. What
genuinely differs between the two libraries is gathered here: moving data (`to_device`, `to_host`, the only two
places where it crosses), `scatter_add`, `erf`, kernels written by hand, how finely work is cut, and the probe that
turns a broken CUDA installation into one sentence. CuPy is imported only when a CUDA device is asked for.
"""

import ctypes
import re
import sys
from functools import cache

import numpy as np

from .errors import DeviceError

BLOCK_ELEMENTS = 1 << 18  # a float32 block of 1 MB: near the core, and few calls for which two threads queue
DEVICE_LENGTH_MULTIPLE = 16  # tokens


def array_module(x):
    """numpy or cupy, whichever made the array `x`; anything that is not a CuPy array counts as NumPy."""
    cupy = sys.modules.get("cupy")
    return cupy if cupy is not None and isinstance(x, cupy.ndarray) else np


def on_host(x):
    """True where `x` is in host memory, so that looking at a value costs no copy between devices."""
    return array_module(x) is np


def to_host(x):
    """`x` as a NumPy array. One of the two places where data crosses between host and device."""
    return x if isinstance(x, np.ndarray) else array_module(x).asnumpy(x) if not on_host(x) else np.asarray(x)


def to_device(x, device="cpu"):
    """Host array `x` on `device` ("cpu" or "cuda:i"); on the CPU the array itself, uncopied."""
    if device == "cpu":
        return x
    import cupy

    with cupy.cuda.Device(int(device.split(":")[1])):
        return cupy.asarray(x)


def device_of(x):
    """Name of the device that holds the array `x`: "cpu" or "cuda:i"."""
    return "cpu" if on_host(x) else f"cuda:{x.device.id}"


def resolve_device(name):
    """Canonical device name, "cpu" or "cuda:i", after proving that the device works.

    Raises DeviceError with the missing part and the extra that supplies it. The probe multiplies a matrix and
    sums it, because CuPy looks for cuBLAS and the kernel compiler only at their first use. The device becomes
    CuPy's current one, on which it makes new arrays.
    """
    match = re.fullmatch(r"cpu|cuda(?::(\d+))?", name)
    if not match:
        raise DeviceError(f"device {name!r} is not known; expected cpu, cuda or cuda:i with i a device number")
    if name == "cpu":
        return name
    index = int(match.group(1) or 0)
    extras = "pip install 'nano_simcse[cuda13]' (CUDA 13) or 'nano_simcse[cuda12]' (CUDA 12)"
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(f"--device {name} needs CuPy, which cannot be imported ({error}); {extras}") from None
    runtime = cupy.cuda.runtime
    if runtime.driverGetVersion() == 0:
        raise DeviceError(f"--device {name} needs an NVIDIA driver, and none is installed on this machine")
    try:
        count = runtime.getDeviceCount()
        if index >= count:
            raise DeviceError(f"--device {name} asks for device {index}, but only {count} CUDA device(s) are visible")
        cupy.cuda.Device(index).use()
        square = cupy.ones((2, 2), dtype=np.float32)
        float((square @ square + square).sum())
    except DeviceError:
        raise
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise DeviceError(f"--device {name} has no free memory left ({error})") from None
    except runtime.CUDARuntimeError as error:
        raise DeviceError(f"--device {name} does not answer: {error}; match the driver to {extras}") from None
    except (ImportError, RuntimeError) as error:
        raise DeviceError(f"--device {name} lacks a CUDA library ({error}); pip install 'cupy-cuda13x[ctk]'") from None
    return f"cuda:{index}"


def device_of_place(name, place):
    """Device of process number `place` of its machine: for "cuda" one of the visible devices in turn, else `name`."""
    if name != "cuda":
        return name
    try:
        import cupy

        return f"cuda:{place % cupy.cuda.runtime.getDeviceCount()}"
    except Exception:  # no CuPy, driver or device: resolve_device says which
        return name


def length_multiple(device):
    """Number to round row lengths up to before rows are grouped by length (see data.batches.pack).

    1 on the CPU, where padding costs arithmetic and a group little; 16 on a device, where every group is some dozens
    of kernel launches a layer and a few more tokens are free.
    """
    return 1 if device == "cpu" else DEVICE_LENGTH_MULTIPLE


def row_blocks(x, elements=BLOCK_ELEMENTS):
    """Slices over the first axis of `x`, cache-sized on the host, the whole axis on a device.

    A chain of elementwise operations run block by block reads each number from memory once instead of once per
    operation; the result is the same, because rows are independent.
    """
    rows = x.shape[0]
    if not on_host(x) or x.size <= elements:
        return [slice(0, rows)]
    step = max(1, elements * rows // x.size)
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def scatter_add(target, ids, rows):
    """target[ids[m]] += rows[m] for every m, duplicates accumulated.

    Shapes: target (V, D), ids (M,) integers, rows (M, D). On the host: the rows of each id are added up as a product
    with the sparse matrix that holds a 1 for each use, in the order of the rows, so the bits repeat. On a device:
    atomic additions, whose order, and so the last bits, may vary.
    """
    if not on_host(target):
        array_module(target).add.at(target, ids, rows)
        return
    if len(ids) == 0:
        return
    from scipy.sparse import csr_array  # at first use: scipy takes longer to import than this package

    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    uses = csr_array((np.ones(len(ids), rows.dtype), order, np.append(starts, len(ids))), (len(starts), len(ids)))
    target[ordered[starts]] += uses @ rows


def erf(x):
    """The error function, elementwise, in the precision of `x`."""
    if on_host(x):
        from scipy import special  # at first use: scipy takes longer to import than this package

        return special.erf(x)
    from cupyx.scipy.special import erf as device_erf

    return device_erf(x)


@cache
def elementwise_kernel(xp, inputs, outputs, body, name, preamble=""):
    """A CUDA kernel from C text for the library `xp`, made once (cupy.ElementwiseKernel, whose arguments these are)."""
    return xp.ElementwiseKernel(inputs, outputs, body, name, preamble=preamble)


@cache
def keep_freed_memory():
    """Ask the C allocator to reuse large blocks instead of returning each to the kernel; True where it agreed.

    glibc hands every array above 128 kB back on release and page-faults it in again on the next allocation, which
    costs a training step about 40 % of its time; two thresholds (mallopt(3)) stop that. It also gives every thread an
    arena of its own, whose pieces of 64 MB go back to the kernel when empty, which costs another 3 to 5 %; a limit of
    one arena stops that. These are settings of the process, made once, at the first training or encoding; other C
    libraries are left alone.
    """
    if not sys.platform.startswith("linux"):
        return False
    trim_threshold, mmap_threshold, arena_max = -1, -3, -8
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    settings = (mmap_threshold, 1 << 30), (trim_threshold, 1 << 30), (arena_max, 1)
    return all([mallopt(*setting) for setting in settings])
