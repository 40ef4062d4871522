"""Negatives from earlier steps: a queue, a bank, and the slowly moving encoder that keeps them comparable.

Past embeddings cost no memory for activations and give no gradient: they are constants to the loss. They age, because
the encoder that made them has moved on; a second encoder that follows the trained one slowly,

    slow <- m slow + (1 - m) fast        after every step,

writes keys that change little while they wait. Source: He et al., arXiv 1911.05722 (queue, m = 0.999); Wu et al.,
arXiv 1805.01978 (bank).
"""

import numpy as np

from .backend import array_module
from .errors import InputError
from .layers.normalize import normalize


class MemoryQueue:
    """The last `size` keys, first in, first out; rows of unit length, on the device of the first rows.

    >>> queue = MemoryQueue(3)
    >>> queue.push(np.array([[2.0, 0.0], [0.0, 5.0]]))
    >>> len(queue), queue.rows().tolist()
    (2, [[1.0, 0.0], [0.0, 1.0]])
    """

    def __init__(self, size: int):
        if size < 1:
            raise InputError(f"size is {size}; expected at least 1")
        self.size, self._ring, self._next, self._filled = size, None, 0, 0

    def __len__(self):
        return self._filled

    def push(self, keys):
        """Append keys (B, D), dropping the oldest rows beyond `size`. Raises InputError for another width."""
        unit = normalize(keys)[0]
        if self._ring is None:
            self._ring = array_module(unit).zeros((self.size, unit.shape[1]), unit.dtype)
        if unit.shape[1] != self._ring.shape[1]:
            raise InputError(f"keys are {unit.shape[1]} wide, the queue holds rows of {self._ring.shape[1]}")
        unit = unit[-self.size :]
        at = (self._next + array_module(unit).arange(len(unit))) % self.size
        self._ring[at] = unit
        self._next = int((self._next + len(unit)) % self.size)
        self._filled = min(self.size, self._filled + len(unit))

    def rows(self):
        """A copy of what it holds, oldest first: (len, D), or None while it is empty."""
        if not self._filled:
            return None
        start = self._next if self._filled == self.size else 0
        return self._ring[(start + array_module(self._ring).arange(self._filled)) % self.size]


class MemoryBank:
    """One slot for every training row; a slot follows its row's embeddings: v <- normalize(m v + (1 - m) z).

    The first write of a slot sets it to z. `sample` draws among the slots that were written.
    """

    def __init__(self, rows: int, width: int, momentum: float = 0.5, dtype=np.float32):
        _check_momentum(momentum)
        self.momentum, self.slots = momentum, np.zeros((rows, width), dtype)
        self.written = np.zeros(rows, dtype=bool)

    def update(self, ids, embeddings):
        """Move the slots `ids` (B,), all different, towards embeddings (B, D)."""
        ids = np.asarray(ids)
        if len(np.unique(ids)) != len(ids):
            raise InputError("ids name a slot twice; a slot takes one embedding per update")
        z = normalize(embeddings)[0]
        m = np.where(self.written[ids], self.momentum, 0.0)[:, None].astype(self.slots.dtype)
        self.slots[ids] = normalize(m * self.slots[ids] + (1 - m) * z)[0]
        self.written[ids] = True

    def sample(self, count, rng, exclude=()):
        """`count` different written rows, none of `exclude`, drawn uniformly: (rows (K,), slots (K, D))."""
        allowed = self.written.copy()
        allowed[np.asarray(exclude, dtype=np.intp)] = False
        pool = np.flatnonzero(allowed)
        rows = rng.choice(pool, min(count, len(pool)), replace=False)
        return rows, self.slots[rows]


def follow(slow, fast, momentum=0.999):
    """slow <- momentum * slow + (1 - momentum) * fast, in place, on two Parameters of one layout.

    Raises InputError for a momentum outside [0, 1) or different layouts.
    """
    _check_momentum(momentum)
    if slow.shapes != fast.shapes:
        raise InputError("a slow encoder can only follow one whose parameters have the same names and shapes")
    number = slow.flat.dtype.type
    slow.flat[...] *= number(momentum)
    slow.flat[...] += number(1 - momentum) * fast.flat


def _check_momentum(momentum):
    if not 0 <= momentum < 1:
        raise InputError(f"momentum is {momentum}; expected a number in [0, 1)")
