"""The array of the stand-in: holds a NumPy array, is none, and converts to none on its own.

A subclass of ndarray would not do: np.asarray, np.add, h[:] = d and most else would quietly accept it.
"""

import numpy as np

from .meter import METER, SPEC, Banned, Device, Refused, check_keywords

SCALARS = (bool, int, float, complex, np.generic)


def host(x, sequences=False):
    """The NumPy side of an operand; host arrays, lists and everything else that is no scalar are refused."""
    if isinstance(x, DeviceArray):
        if x.device.id != METER.device:
            raise Banned(f"an array of device {x.device.id} is used while device {METER.device} is current")
        return x._values
    if sequences and isinstance(x, list | tuple):
        return type(x)(host(item, sequences) for item in x)
    if x is None or isinstance(x, SCALARS) or (sequences and not isinstance(x, np.ndarray)):
        return x
    raise Refused(f"Unsupported type {type(x)}")


def wrap(values):
    """NumPy results as device arrays; a scalar becomes a 0-d array, as it does on a device."""
    if isinstance(values, np.ndarray | np.generic):
        values = np.asarray(values)
        if values.dtype == np.float64 and not METER.float64:
            raise Banned("a float64 array came up in a float32 step")
        if values.dtype.kind not in "biufc":
            raise Refused(f"Unsupported dtype {values.dtype}")
        return DeviceArray(values)
    if isinstance(values, list | tuple):
        return type(values)(wrap(v) for v in values) if type(values) in (list, tuple) else tuple(map(wrap, values))
    return values


def computed(result, *operands):
    """Wrap what NumPy returned and count a launch for each array that is no view of an operand."""
    arrays = [x for x in operands if isinstance(x, np.ndarray)]
    for part in result if isinstance(result, list | tuple) else [result]:
        view = isinstance(part, np.ndarray) and any(np.may_share_memory(part, x) for x in arrays)
        METER.launch(0 if view else 1)
    return wrap(result)


def same_memory(a, b):
    """True where two NumPy arrays are the same elements in the same places."""
    places = [(x.__array_interface__["data"][0], x.shape, x.strides) for x in (a, b)]
    return places[0] == places[1]


def index(i):
    """The NumPy side of an index, and the number of index arrays in it."""
    parts = i if isinstance(i, tuple) else (i,)
    for part in parts:
        if isinstance(part, np.ndarray | list):
            raise Banned("an index array on the host is copied to the device at every use")
    arrays = [part for part in parts if isinstance(part, DeviceArray)]
    # the size of what a boolean array picks is data, for which the host waits
    METER.downloads += sum(part.dtype == bool for part in arrays)
    found = tuple(host(part, sequences=True) for part in parts)
    return (found if isinstance(i, tuple) else found[0]), len(arrays)


def index_launches(arrays):
    """Kernels of indexing with integer arrays: one; with several, their combination into one index before it."""
    return arrays + 2 if arrays > 1 else 1


def check_sort(name, keywords):
    """Refuse the sorting algorithms that CuPy does not offer."""
    if name in ("sort", "argsort") and keywords.get("kind") not in (None, "stable"):
        raise ValueError("kind can only be None or 'stable'")


class DeviceArray:
    """What the stand-in hands out as cupy.ndarray. Its operators are added in ufuncs.py."""

    __slots__ = ("_values", "device")
    __array_ufunc__ = None  # np.exp(d) works in CuPy; here it is refused, for the package asks array_module
    __array_priority__ = 100
    __hash__ = None

    def __init__(self, values):
        self._values, self.device = values, Device(METER.device)

    def __array__(self, dtype=None, copy=None):
        raise Refused("Implicit conversion to a NumPy array is not allowed. Use .get() to construct one.")

    def get(self, stream=None, order="C", out=None, blocking=True):
        METER.downloads += 1
        if out is None:
            return self._values.copy(order)
        out[...] = self._values
        return out

    def _look(self, convert):
        METER.downloads += 1
        return convert(self._values)

    def item(self):
        return self._look(lambda values: values.item())

    def tolist(self):
        return self._look(lambda values: values.tolist())

    def tobytes(self, order="C"):
        return self._look(lambda values: values.tobytes(order))

    def __float__(self):
        return self._look(float)

    def __int__(self):
        return self._look(int)

    def __bool__(self):
        return self._look(bool)

    def __format__(self, form):
        return self._look(lambda values: format(values.item() if values.ndim == 0 else str(values), form))

    def __repr__(self):
        return f"DeviceArray({self._values!r})"

    def __len__(self):
        return len(self._values)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i):
        found, arrays = index(i)
        result = self._values[found]
        if arrays:
            METER.launch(index_launches(arrays))
        elif not isinstance(result, np.ndarray):  # one element: on a device, a 0-d view
            result = self._values[(*found, ...) if isinstance(found, tuple) else (found, ...)]
        return wrap(result)

    def __setitem__(self, i, value):
        found, arrays = index(i)
        if isinstance(value, np.ndarray):
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")  # CuPy's words
        new = host(value)
        if not arrays and isinstance(new, np.ndarray) and same_memory(self._values[found], new):
            return  # a[i] += b ends in the assignment of a[i] to itself, which CuPy skips
        if arrays and isinstance(value, DeviceArray):
            _require_distinct(self._values.shape, found)
        elif arrays:
            METER.uploads += 1  # CuPy makes an array of the scalar, on the host
        METER.launch(index_launches(arrays))
        self._values[found] = new

    @property
    def T(self):
        return wrap(self._values.T)

    def __getattr__(self, name):
        if name not in SPEC["ndarray"] or not hasattr(np.ndarray, name):
            raise AttributeError(f"'cupy.ndarray' object has no attribute {name!r}")
        thing = getattr(self._values, name)
        return self._method(name, thing) if callable(thing) else thing

    def _method(self, name, thing):
        def call(*arguments, **keywords):
            check_keywords(f"ndarray.{name}", SPEC["ndarray"][name], keywords)
            check_sort(name, keywords)
            operands = [host(x, sequences=True) for x in arguments]
            result = thing(*operands, **{key: host(x, sequences=True) for key, x in keywords.items()})
            out = keywords.get("out")
            if out is None and result is not None:
                return computed(result, self._values)
            METER.launch()
            return out

        return call


def _require_distinct(shape, found):
    """Ban an assignment that writes one place twice: on a device the winner is undefined, and += keeps one."""
    seen = np.zeros(shape, np.int32)
    np.add.at(seen, found, 1)
    if (seen > 1).any():
        raise Banned("an assignment through an index array writes one place twice; expected scatter_add")
