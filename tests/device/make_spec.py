"""Write cupy_spec.json: which names and keywords the installed CuPy has. Needs no GPU and no driver.

    pip install cupy-cuda13x
    python tests/device/make_spec.py

CuPy imports without a driver, and its functions can be asked for their signatures; that is all this file does. The
table says what exists, not what it computes. Values:

    ["a", "out"]    a callable and the keywords it takes
    null            a callable that does not tell its keywords: any are let through
    "ufunc"         a universal function: out, dtype and casting, no where
    "value"         a constant, a dtype or a type
"""

import inspect
import json
import re
import warnings
from pathlib import Path

import numpy as np

TABLE = Path(__file__).with_name("cupy_spec.json")
UFUNC = "ufunc"
# Which methods of which ufuncs are implemented is decided inside compiled code; read from its source (14.2).
UFUNC_METHODS = {
    "at": ["add", "bitwise_and", "bitwise_or", "bitwise_xor", "maximum", "minimum"],
    "reduce": ["add", "multiply"],
    "accumulate": ["add", "multiply"],
    "reduceat": ["add"],
    "outer": None,
}
MODULES = ("", "linalg", "random", "fft")  # the submodules numerical code may reach through `xp`


def keywords(function):
    """Keyword names a callable takes, or None where it does not say."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):  # compiled: the first line of its docstring holds the signature
        found = re.match(r"[\w.]+\(([^)]*)\)", (function.__doc__ or "").strip())
        if not found:
            return None
        names = (re.split(r"[=:]", part)[0].strip().split(" ")[-1] for part in found.group(1).split(","))
        return [name for name in names if name.isidentifier() and name != "self"]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name != "self"]


def entry(thing, ufunc):
    """The table's value for one attribute."""
    if isinstance(thing, ufunc):
        return UFUNC
    if not callable(thing) or (isinstance(thing, type) and issubclass(thing, np.generic)):
        return "value"
    return keywords(thing)


def members(owner, ufunc):
    """{public name: entry} of a module or class, submodules left out."""
    found = {}
    for name in sorted(dir(owner)):
        if name.startswith("_"):
            continue
        thing = getattr(owner, name, None)
        if not inspect.ismodule(thing):
            found[name] = entry(thing, ufunc)
    return found


def read_cupy():
    """The whole table, from the CuPy that is installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import cupy
        import cupyx.scipy.special

        return {
            "version": cupy.__version__,
            "modules": {name: members(getattr(cupy, name) if name else cupy, cupy.ufunc) for name in MODULES},
            "special": members(cupyx.scipy.special, cupy.ufunc),
            "ndarray": members(cupy.ndarray, cupy.ufunc),
            "operators": sorted(
                name for name in dir(cupy.ndarray) if name.startswith("__") and not hasattr(object, name)
            ),
            "ufunc_methods": UFUNC_METHODS,
        }


def as_text(table):
    """One entry a line, so that a change of CuPy is a readable difference."""
    return re.sub(r"\[\s+([^]]*?)\s+\]", lambda m: "[" + re.sub(r"\s+", " ", m.group(1)) + "]",
                  json.dumps(table, indent=1, sort_keys=True)) + "\n"  # fmt: skip


if __name__ == "__main__":
    TABLE.write_text(as_text(read_cupy()), encoding="utf-8")
    print(f"wrote {TABLE}")
