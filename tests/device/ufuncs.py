"""Universal functions, matmul and the operators of the stand-in."""

import numpy as np

from .array import DeviceArray, host, index, same_memory, wrap
from .meter import METER, SPEC, Banned, Refused, check_keywords

KEYWORDS = ["out", "dtype", "casting"]
ATOMIC = ("int32", "int64", "uint32", "uint64", "float16", "float32", "float64")
BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "matmul": "matmul", "lshift": "left_shift", "rshift": "right_shift",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
}  # fmt: skip
COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip
UNARY = {"neg": "negative", "abs": "absolute", "invert": "invert", "pos": "positive"}


def on_device(x):
    """`x`, which must be an array of the current device."""
    if not isinstance(x, DeviceArray):
        raise Refused(f"Unsupported type {type(x)}")
    host(x)
    return x


class Ufunc:
    """A universal function: no `where`, operands on the device, `at` and `reduce` only where CuPy has them."""

    def __init__(self, name, function=None):
        self.name, self.function = name, function or getattr(np, name)

    def __call__(self, *arguments, **keywords):
        check_keywords(self.name, KEYWORDS, keywords)
        out = keywords.pop("out", None)
        if out is None and len(arguments) > self.function.nin:
            *arguments, out = arguments
        operands = [host(x) for x in arguments]
        METER.launch()
        if out is None:
            return wrap(self.function(*operands, **keywords))
        target = on_device(out)._values
        for x in operands:
            if isinstance(x, np.ndarray) and np.shares_memory(x, target) and not same_memory(x, target):
                raise Banned(f"{self.name} reads and writes overlapping parts of one array, in no given order")
        self.function(*operands, out=target, **keywords)
        return out

    def __getattr__(self, method):
        if method not in SPEC["ufunc_methods"]:
            raise AttributeError(method)
        allowed = SPEC["ufunc_methods"][method]

        def call(*arguments, **keywords):
            if allowed is not None and self.name not in allowed:
                raise NotImplementedError(f"cupy.{self.name}.{method} is not supported")
            METER.launch()
            if method != "at":
                return wrap(getattr(self.function, method)(*map(host, arguments), **keywords))
            target, ids, *values = arguments
            if on_device(target).dtype.name not in ATOMIC:
                raise Refused(f"cupy.{self.name}.at does not support {target.dtype}")
            return self.function.at(target._values, index(ids)[0], *map(host, values))

        return call


class Matmul(Ufunc):
    """matmul. cuBLAS takes a transposed matrix as it is, but CuPy's batched form copies whatever is not contiguous."""

    def __init__(self):
        super().__init__("matmul")

    def __call__(self, a, b, out=None):
        operands = [host(x) for x in (a, b)]
        target = None if out is None else on_device(out)._values
        batched = max(x.ndim for x in operands) > 2
        copied = [x for x in operands if not (x.flags.c_contiguous or (x.flags.f_contiguous and not batched))]
        METER.launch(1 + len(copied) + (target is not None and not target.flags.c_contiguous))
        result = np.matmul(*operands, out=target)
        return wrap(result) if out is None else out


def _binary(function, reverse=False):
    def apply(self, other):
        return function(other, self) if reverse else function(self, other)

    return apply


def _in_place(function):
    return lambda self, other: function(self, other, out=self)


def _unary(function):
    return lambda self: function(self)


def give_operators(cls):
    """Add the operators that the table lists; without __imatmul__, `a @= b` binds the name a to a new array."""
    for short, name in BINARY.items():
        function = Matmul() if name == "matmul" else Ufunc(name)
        setattr(cls, f"__{short}__", _binary(function))
        setattr(cls, f"__r{short}__", _binary(function, reverse=True))
        if f"__i{short}__" in SPEC["operators"]:
            setattr(cls, f"__i{short}__", _in_place(function))
    for short, name in COMPARISONS.items():
        setattr(cls, f"__{short}__", _binary(Ufunc(name)))
    for short, name in UNARY.items():
        setattr(cls, f"__{short}__", _unary(Ufunc(name)))


give_operators(DeviceArray)
