"""Batches without padding: tokens of all rows end to end, rows of one length side by side.

The linear layers see a matrix of M real tokens, whatever the lengths; attention sees, for each group of rows of one
length, a dense (rows, heads, length, length) product. Sorting and grouping happen here, once, on the host; results
come back in the order the rows were given.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..backend import to_device
from ..masks import row_labels


@dataclass(frozen=True)
class Group:
    """Rows of one length, adjacent in the packed order.

    start    index of the group's first token        count    number of rows n
    length   tokens T per row                        rows     (n,) places of these rows in the order given
    keep     bool (n, T), False on padding, or None where every row has T real tokens
    """

    start: int
    count: int
    length: int
    rows: object
    keep: object = None

    @property
    def tokens(self):
        """The slice of packed tokens that belongs to this group."""
        return slice(self.start, self.start + self.count * self.length)


@dataclass(frozen=True)
class Batch:
    """What the encoder reads.

    ids        (M,) token ids                         positions  (M,) place of each token in its row
    groups     tuple of Group                         first      (B,) packed index of each row's first token, [CLS]
    sequences  uint64 (B,) mask labels of the rows in packed order (see masks.row_labels)
    tokens     uint64 (M,) mask labels of the tokens: the row's label plus the position
    """

    ids: object
    positions: object
    groups: tuple
    first: object
    sequences: object
    tokens: object

    def to(self, device):
        """The same batch with its arrays on `device`."""
        if device == "cpu":
            return self

        def move(x):
            return None if x is None else to_device(x, device)

        groups = tuple(replace(g, rows=move(g.rows), keep=move(g.keep)) for g in self.groups)
        arrays = {name: move(getattr(self, name)) for name in ("ids", "positions", "first", "sequences", "tokens")}
        return Batch(groups=groups, **arrays)


def pack(rows, labels=None, multiple=1, pad_id=0, longest=None):
    """Pack token rows into a Batch.

    rows: list of B integer arrays, none empty; labels: uint64 (B,) mask labels, by default sentence i of view 0;
    multiple: lengths are rounded up to a multiple of this, which makes fewer and larger groups at the price of some
    padding (1, the default, pads nothing); longest: rounding stops at this length, such as the model's positions.
    Raises ValueError for an empty list or an empty row.
    """
    lengths = np.array([len(row) for row in rows])
    if len(rows) == 0 or lengths.min() == 0:
        raise ValueError("a batch needs at least one row, and every row at least one token")
    if labels is None:
        labels = row_labels(np.arange(len(rows)), np.zeros(len(rows), int))
    padded = -(-lengths // multiple) * multiple
    if longest is not None:
        padded = np.maximum(lengths, np.minimum(padded, longest))
    order = np.argsort(padded, kind="stable")
    ends = np.cumsum(padded[order])
    first = np.empty(len(rows), np.int64)
    first[order] = ends - padded[order]

    ids = np.full(ends[-1], pad_id, np.int32)
    for row, start in zip(rows, first, strict=True):
        ids[start : start + len(row)] = row
    positions = np.arange(ends[-1]) - np.repeat(ends - padded[order], padded[order])
    sequences = labels[order]
    tokens = np.repeat(sequences, padded[order]) + positions.astype(np.uint64)

    groups = []
    cuts = np.flatnonzero(np.diff(padded[order])) + 1
    for members in np.split(order, cuts):
        length = int(padded[members[0]])
        short = lengths[members].min() < length
        keep = np.arange(length) < lengths[members][:, None] if short else None
        groups.append(Group(int(first[members[0]]), len(members), length, members, keep))
    return Batch(ids, positions, tuple(groups), first, sequences, tokens)
