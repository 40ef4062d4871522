"""Draw the figures and remember, in figures/data.json, what data they show.

A figure module has data() -> dict of arrays and draw() -> matplotlib Figure. The manifest
keeps, per array, its shape, mean, root mean square and up to 64 entries to six digits. The rendered files carry the
digest of their manifest entry, so a test can tell a stale picture without comparing pixels.
"""

import contextlib
import hashlib
import importlib
import json
import os
import pathlib
import tempfile

import numpy as np
from lesson.runner import ROOT

FOLDER = ROOT / "figures"
MANIFEST = FOLDER / "data.json"
SAMPLES = 64
_TOLERANCE = 2e-5  # six printed digits, and what another processor may round differently


def names():
    """The figure modules: every figures/*.py whose name does not start with an underscore."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))


def load(name):
    """The module of a figure."""
    return importlib.import_module(f"figures.{name}")


def summary(data):
    """What the manifest says of the arrays a figure draws."""
    return {key: _summarise(np.asarray(value)) for key, value in sorted(data.items())}


def digest(entry):
    """A short fingerprint of a manifest entry, written into the rendered files."""
    text = json.dumps(entry, sort_keys=True)
    return "data:" + hashlib.sha256(text.encode()).hexdigest()[:16]


def differences(entry, data):
    """The names of the arrays whose data no longer match the manifest entry, in order."""
    fresh = summary(data)
    return [key for key in sorted({*entry, *fresh}) if not _matches(entry.get(key), fresh.get(key))]


def manifest():
    """The stored manifest, empty when there is none."""
    return json.loads(MANIFEST.read_text(encoding="utf-8")) if MANIFEST.exists() else {}


def write_all(folder=FOLDER):
    """Draw every figure as PNG and SVG into folder and rewrite the manifest; returns the files written."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    entries, written = {}, []
    style = {"svg.hashsalt": "nano_simcse", "svg.fonttype": "path"}
    for name in names():
        module = load(name)
        entries[name] = summary(module.data())
        with matplotlib.rc_context(style):
            figure = module.draw()
            for suffix in ("png", "svg"):
                path = pathlib.Path(folder) / f"{name}.{suffix}"
                _save(figure, path, digest(entries[name]))
                written.append(path)
            plt.close(figure)
    path = pathlib.Path(folder) / MANIFEST.name
    with _replacing(path) as part:
        part.write_text(json.dumps(entries, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return [*written, path]


def _save(figure, path, mark):
    metadata = {"Description": mark}
    if path.suffix == ".svg":
        metadata["Date"] = None
    with _replacing(path) as part:
        figure.savefig(part, format=path.suffix[1:], dpi=160, bbox_inches="tight", metadata=metadata)


@contextlib.contextmanager
def _replacing(path):
    """A temporary file in the same folder that takes path's place when the block succeeds."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    part = pathlib.Path(name)
    try:
        yield part
        part.chmod(0o644)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _summarise(array):
    if array.dtype.kind not in "biuf":
        flat = [str(x) for x in array.ravel().tolist()]
        return {"shape": list(array.shape), "text": hashlib.sha256("\n".join(flat).encode()).hexdigest()[:16]}
    numbers = array.astype(np.float64).ravel()
    at = np.linspace(0, numbers.size - 1, min(SAMPLES, numbers.size)).round().astype(int)
    return {
        "shape": list(array.shape),
        "mean": _six(numbers.mean() if numbers.size else 0.0),
        "rms": _six(np.sqrt(np.mean(numbers**2)) if numbers.size else 0.0),
        "sample": [_six(x) for x in numbers[at]],
    }


def _six(x):
    return float(f"{x:.6g}")


def _matches(old, new):
    if old is None or new is None or old.keys() != new.keys() or old["shape"] != new["shape"]:
        return False
    if "text" in old:
        return old["text"] == new["text"]
    scale = max(abs(new["rms"]), 1e-300)
    a = np.array([old["mean"], old["rms"], *old["sample"]])
    b = np.array([new["mean"], new["rms"], *new["sample"]])
    return bool(np.all(np.abs(a - b) <= _TOLERANCE * scale) or np.array_equal(a, b))
