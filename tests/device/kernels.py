"""Hand-written kernels on the host: the C text of an ElementwiseKernel in a loop, compiled by the system's compiler.

So the stand-in runs the very text that the device compiles. Without a C compiler it runs the package's NumPy form of
the same function, by name.
"""

import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from nano_simcse import masks

from .array import host
from .meter import METER, Refused
from .ufuncs import on_device

C_NAMES = {"uint64": "unsigned long long", "int64": "long long", "uint32": "unsigned int", "bool": "bool"}
NUMPY_FORMS = {"keep_mask": lambda labels, key, threshold, width, keep: keep.__setitem__(
    ..., masks.keep_mask(int(key), labels, int(width), int(threshold)))}  # fmt: skip


def parameters(text):
    """[(type, name, raw)] of a parameter list such as "raw uint64 labels, int64 width"."""
    parts = [part.split() for part in text.split(",")]
    return [(words[-2], words[-1], words[0] == "raw") for words in parts]


def loop_source(inputs, outputs, body, preamble, cuda=False):
    """C or CUDA text of a function run(n, inputs, outputs): the body for i = 0 ... n - 1, as CuPy wraps it."""
    declared = [f"{'const ' if raw else ''}{C_NAMES[t]} {'*' if raw else ''}{name}" for t, name, raw in inputs]
    declared += [f"{C_NAMES[t]} *{name}_out" for t, name, _ in outputs]
    local = " ".join(f"{C_NAMES[t]} {name};" for t, name, _ in outputs)
    store = " ".join(f"{name}_out[i] = {name};" for _, name, _ in outputs)
    if cuda:
        start = 'extern "C" __global__ void run'
        loop = "long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x"
        begin = preamble
    else:
        start, loop = "void run", "long long i = 0; i < n; ++i"
        begin = f"#include <stdbool.h>\n#define __device__ static\n{preamble}"
    return f"{begin}\n{start}(long long n, {', '.join(declared)}) {{\nfor ({loop}) {{ {local}\n{body}\n{store} }}\n}}\n"


@functools.cache
def compiled(source):
    """The function `run` of a C text, or None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        text, library = Path(folder, "kernel.c"), Path(folder, "kernel.so")
        text.write_text(source, encoding="utf-8")
        command = [compiler, "-O1", "-fPIC", "-shared", text, "-o", library]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SyntaxError(done.stderr)
        return ctypes.CDLL(str(library)).run


class ElementwiseKernel:
    """cupy.ElementwiseKernel for parameters of fixed types: raw arrays and scalars in, one contiguous array out."""

    def __init__(self, in_params, out_params, operation, name="kernel", preamble=""):
        self.inputs, self.outputs, self.name = parameters(in_params), parameters(out_params), name
        self.source = loop_source(self.inputs, self.outputs, operation, preamble)

    def __call__(self, *arguments):
        METER.launch()
        *given, out = arguments
        values = [self._input(x, *parameter) for x, parameter in zip(given, self.inputs, strict=True)]
        target = on_device(out)._values
        if target.dtype != self.outputs[0][0] or not target.flags.c_contiguous:
            raise Refused(f"{self.name} writes a contiguous {self.outputs[0][0]} array, not {target.dtype}")
        run = compiled(self.source)
        if run is None:
            NUMPY_FORMS[self.name](*values, target)
        else:
            pointers = [x.ctypes.data_as(ctypes.c_void_p) if isinstance(x, np.ndarray) else
                        np.ctypeslib.as_ctypes_type(x.dtype)(x.item()) for x in values]  # fmt: skip
            run(ctypes.c_longlong(target.size), *pointers, target.ctypes.data_as(ctypes.c_void_p))
        return out

    def _input(self, x, kind, name, raw):
        if not raw:
            return np.dtype(kind).type(host(x))
        values = on_device(x)._values
        if values.dtype != kind:
            raise Refused(f"{self.name} expects {name} as {kind}, not {values.dtype}")
        return np.ascontiguousarray(values)
