"""What the stand-in measures and forbids: launches, copies, float64; and the two kinds of error it raises.

Refused is what CuPy itself raises (a TypeError; a ValueError is raised as one). Banned is an AssertionError for what
CuPy would let pass with a wrong or slow result: the package must not do it.
"""

import json
import sys
from collections import Counter
from pathlib import Path

SPEC = json.loads(Path(__file__).with_name("cupy_spec.json").read_text(encoding="utf-8"))
PACKAGE = "nano_simcse"


class Refused(TypeError):
    """CuPy raises here too."""


class Banned(AssertionError):
    """CuPy would go on here; a training step must not come here."""


class RuntimeFault(RuntimeError):
    """Stands for cupy.cuda.runtime.CUDARuntimeError."""


class OutOfMemory(MemoryError):
    """Stands for cupy.cuda.memory.OutOfMemoryError."""


class Meter:
    """What happened on the device, and what is allowed to.

    launches: kernels started, one an array operation, plus the copies that CuPy's batched matmul makes of operands
    that are not contiguous and the index arithmetic of indexing with several arrays; places: the same by (module,
    "forward" or "backward"), filled where `trace` is set; downloads, uploads: copies to and from the host; float64:
    whether arrays of that precision may come up; memory: launches until the device runs out of memory, or None.
    """

    def __init__(self):
        self.reset()

    def reset(self):
        self.launches = self.downloads = self.uploads = 0
        self.places = Counter()
        self.trace = self.float64 = False
        self.device, self.memory = 0, None

    def launch(self, count=1):
        self.launches += count
        if self.trace and count:
            self.places[_place()] += count
        if self.memory is not None and self.launches > self.memory:
            raise OutOfMemory("Out of memory allocating 1,024 bytes (allocated so far: 4,096 bytes).")


METER = Meter()


def _place():
    """(module, direction): the innermost module of the package at work, and whether inside a function `backward`."""
    frame, inner, direction = sys._getframe(2), "", "forward"
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(f"{PACKAGE}."):
            inner = inner or module.removeprefix(f"{PACKAGE}.")
            if frame.f_code.co_name == "backward":
                direction = "backward"
        frame = frame.f_back
    return inner, direction


def check_keywords(name, allowed, given):
    """Refuse a keyword that the table does not list."""
    if isinstance(allowed, list):
        for keyword in given:
            if keyword not in allowed:
                raise Refused(f"{name}() got an unexpected keyword argument {keyword!r} in CuPy {SPEC['version']}")


class Device:
    """A device by number; a context manager that makes it current."""

    def __init__(self, number=0):
        self.id = number

    def __enter__(self):
        self._before, METER.device = METER.device, self.id
        return self

    def __exit__(self, *exception):
        METER.device = self._before

    def use(self):
        METER.device = self.id

    def synchronize(self):
        """Everything is done at once here."""
