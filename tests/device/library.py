"""The module object that stands in for CuPy in sys.modules, driven by the table of names and keywords."""

import sys
import types
from contextlib import contextmanager

import numpy as np
from scipy import special as scipy_special

from .array import DeviceArray, check_sort, computed, host, wrap
from .kernels import ElementwiseKernel
from .meter import METER, SPEC, Device, OutOfMemory, Refused, RuntimeFault, check_keywords
from .ufuncs import Matmul, Ufunc

FROM_HOST = ("array", "asarray", "ascontiguousarray", "asanyarray")
UNFILLED = ("empty", "empty_like")
DATA_DEPENDENT = ("nonzero", "flatnonzero", "argwhere", "unique", "bincount")  # the host waits for a size


class Namespace(types.ModuleType):
    """A module whose names are those of the table."""

    def __init__(self, name, table, source):
        super().__init__(name)
        self._table, self._source = table, source

    def __getattr__(self, name):
        if name not in self._table:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        kind, source = self._table[name], getattr(self._source, name, None)
        if source is None:
            raise NotImplementedError(f"{self.__name__}.{name} exists in CuPy, but the stand-in does not have it")
        if kind == "value":
            return source
        return Ufunc(name, source) if isinstance(source, np.ufunc) else function(name, kind, source)


def function(name, allowed, source):
    """NumPy's function `source` as CuPy's `name`, with the keywords `allowed`."""

    def call(*arguments, **keywords):
        check_keywords(name, allowed, keywords)
        check_sort(name, keywords)
        if name in FROM_HOST:
            return _upload(name, source, arguments, keywords)
        if name == "einsum" and set(keywords) - {"optimize", "dtype"}:
            raise Refused(f"einsum did not understand the keywords {sorted(keywords)}")
        METER.downloads += name in DATA_DEPENDENT
        operands = [host(x, sequences=True) for x in arguments]
        result = source(*operands, **{key: host(x, sequences=True) for key, x in keywords.items()})
        if name in UNFILLED:
            return wrap(_poison(result))
        if keywords.get("out") is None and result is not None:
            return computed(result, *(y for x in operands for y in (x if isinstance(x, list | tuple) else [x])))
        METER.launch()
        return keywords.get("out")

    return call


def _upload(name, source, arguments, keywords):
    first, *rest = arguments
    if isinstance(first, DeviceArray):
        return computed(source(host(first), *rest, **keywords), host(first))
    METER.uploads += 1
    return wrap(np.array(source(first, *rest, **keywords)))  # never the host's own memory


def _poison(values):
    """What freshly allocated memory may hold: numbers nobody wants."""
    values.fill(np.nan if values.dtype.kind in "fc" else True if values.dtype == bool else np.iinfo(values.dtype).max)
    return values


def make_modules(devices=1):
    """{name: module} of everything the package imports from CuPy."""
    cupy = Namespace("cupy", SPEC["modules"][""], np)
    cupy.ndarray, cupy.newaxis, cupy.matmul = DeviceArray, None, Matmul()
    cupy.asnumpy = lambda x: x.get() if isinstance(x, DeviceArray) else np.asarray(x)
    cupy.ElementwiseKernel = ElementwiseKernel
    for name in ("linalg", "random", "fft"):
        setattr(cupy, name, Namespace(f"cupy.{name}", SPEC["modules"][name], getattr(np, name)))
    cupy.cuda = types.SimpleNamespace(
        Device=Device,
        memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemory),
        runtime=types.SimpleNamespace(
            driverGetVersion=lambda: 13000,
            runtimeGetVersion=lambda: 13000,
            getDeviceCount=lambda: devices,
            getDeviceProperties=lambda number: {"name": b"stand-in", "totalGlobalMem": 0},
            CUDARuntimeError=RuntimeFault,
        ),
    )
    cupy.__version__ = SPEC["version"]
    pool = types.SimpleNamespace(free_all_blocks=lambda: None, total_bytes=lambda: 0)
    cupy.get_default_memory_pool = lambda: pool
    modules = {name: types.ModuleType(name) for name in ("cupyx", "cupyx.scipy", "cupyx.scipy.special")}
    modules["cupyx.scipy.special"].erf = Ufunc("erf", scipy_special.erf)
    return {"cupy": cupy, **modules}


@contextmanager
def installed(devices=1):
    """Inside, `import cupy` finds the stand-in; yields its meter, at zero."""
    METER.reset()
    modules = make_modules(devices)
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield METER
    finally:
        METER.reset()
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
