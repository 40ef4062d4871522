"""All parameters of a model in one flat buffer, with a named view for each.

The flat buffer is what the optimiser, the gradient norm and a checkpoint see; the views are what the layers see.
Gradients and both Adam moments are further buffers of the same layout, so "zero the gradients" is one fill and an
Adam step a few vector operations, whatever the number of layers.
"""

from collections.abc import Mapping
from threading import Lock

import numpy as np

from .backend import array_module


class Parameters(Mapping):
    """Ordered mapping from a name to a view into `flat`; `lock` is for threads that add to one buffer.

    shapes: mapping name -> shape; flat: optional one-dimensional buffer with exactly as many elements as the shapes
    ask for (a new zero buffer of `dtype` otherwise).

    >>> p = Parameters({"weight": (2, 3), "bias": (3,)})
    >>> p["bias"][:] = 1
    >>> p.flat
    array([0., 0., 0., 0., 0., 0., 1., 1., 1.], dtype=float32)
    """

    def __init__(self, shapes, flat=None, dtype=np.float32):
        self.shapes = dict(shapes)
        sizes = [int(np.prod(shape)) for shape in self.shapes.values()]
        if flat is None:
            flat = np.zeros(sum(sizes), dtype)
        if flat.shape != (sum(sizes),):
            raise ValueError(f"the buffer has shape {flat.shape}, the named shapes need ({sum(sizes)},)")
        self.flat, self.lock = flat, Lock()
        ends = np.cumsum(sizes)
        self._views = {
            name: flat[end - size : end].reshape(shape)
            for (name, shape), size, end in zip(self.shapes.items(), sizes, ends, strict=True)
        }

    def __getitem__(self, name):
        return self._views[name]

    def __iter__(self):
        return iter(self._views)

    def __len__(self):
        return len(self._views)

    def __setitem__(self, name, value):
        """Copy `value` into the view; `params[name] += value` adds in place, which is how gradients accumulate."""
        view = self._views[name]
        if value is not view:
            view[...] = value

    def zeros_like(self):
        """A zero buffer of the same layout, dtype and device: for gradients and moments."""
        return Parameters(self.shapes, array_module(self.flat).zeros_like(self.flat))

    def copy(self):
        """The same values in a buffer of their own."""
        return Parameters(self.shapes, self.flat.copy())

    def astype(self, dtype):
        """The same values in a new buffer of another precision."""
        return Parameters(self.shapes, self.flat.astype(dtype))


def accumulate(gradients, name, parts, *values):
    """gradients[name.part] += value for each part, one thread at a time."""
    with gradients.lock:
        for part, value in zip(parts, values, strict=True):
            gradients[f"{name}.{part}"] += value
