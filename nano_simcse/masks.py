"""Dropout masks as a pure function of (seed, step, site, view, sentence, position).

A keep mask is not drawn from a generator with a hidden state; it is computed from a counter. Each row of an
activation has a 64-bit label that says which view of which sentence, which attention head and which position it
is; the label and the key (seed, step, site) are hashed, and the hash of (row, column group) yields four 16-bit
lanes, one per column. A unit is dropped where its lane falls below rate * 65536.

What this buys: the same bits on every device, for any order, split or padding of the batch; a mask can be computed
again instead of stored; a training run resumes exactly, because step k's masks do not depend on how one got there.

The hash is the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), a bijection of 64-bit words whose
output bits pass the usual statistical batteries when fed a counter.
"""

from dataclasses import dataclass
from operator import index

import numpy as np

from .backend import array_module, elementwise_kernel, on_host
from .errors import InputError

MODES = ("independent", "shared", "off")
WORD = (1 << 64) - 1
GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
LEVELS = 1 << 16  # a rate is rounded to a multiple of 1/65536
VIEW_SHIFT, SENTENCE_SHIFT, HEAD_SHIFT = 56, 24, 16  # row label: view | sentence (32 bits) | head | position
HASHED_WORDS = 1 << 15  # per block on the host: 256 kB


def row_labels(sentences, views):
    """Labels of sequences, uint64: sentences (B,) numbers in the batch, views (B,) 0, 1 or 2."""
    sentences, views = np.asarray(sentences, np.uint64), np.asarray(views, np.uint64)
    return views << np.uint64(VIEW_SHIFT) | sentences << np.uint64(SENTENCE_SHIFT)


@dataclass(frozen=True)
class Masks:
    """The dropout of one training step.

    seed, step   which run and which step
    rate         probability of dropping a unit, in [0, 1); used after rounding to a multiple of 1/65536
    mode         "independent": every view has masks of its own (SimCSE); "shared": all views of a sentence get the
                 same mask (the paper's "fixed" control); "off": nothing is dropped

    Raises InputError for a rate outside [0, 1) or an unknown mode.
    """

    seed: int
    step: int
    rate: float
    mode: str = "independent"

    def __post_init__(self):
        if not 0 <= self.rate < 1:
            raise InputError(f"dropout rate {self.rate} is outside [0, 1)")
        if self.mode not in MODES:
            raise InputError(f"mask mode {self.mode!r} is not one of {', '.join(MODES)}")

    @property
    def threshold(self):
        """Lanes below this are dropped: rate * 65536, rounded, at most 65535."""
        return 0 if self.mode == "off" else min(round(self.rate * LEVELS), LEVELS - 1)

    @property
    def scale(self):
        """1 / (1 - rate) for the rounded rate: what a kept unit is multiplied by (inverted dropout)."""
        return LEVELS / (LEVELS - self.threshold)

    def keep(self, site, labels, width):
        """Keep mask for one site, bool (rows, width), or None where nothing is dropped.

        site: number of the dropout site; labels: uint64 (rows,); width: units per row.
        """
        if self.threshold == 0:
            return None
        if self.mode == "shared":
            labels = labels & np.uint64((1 << VIEW_SHIFT) - 1)
        return keep_mask(hash_key(self.seed, self.step, site), labels, width, self.threshold)

    def keep_each(self, site, labels, widths):
        """[keep(site, part, width)] for parts of labels with a width each; small neighbours are made in one go.

        They are made as wide as the widest of them, which hashes more words and needs fewer calls.
        """
        if self.threshold == 0:
            return [None] * len(labels)
        xp, keeps = array_module(labels[0]), []
        for places in _joined([len(part) for part in labels], widths):
            together = xp.concatenate([labels[i] for i in places])
            whole, start = self.keep(site, together, max(widths[i] for i in places)), 0
            for i in places:
                keeps.append(whole[start : start + len(labels[i]), : widths[i]])
                start += len(labels[i])
        return keeps


def _joined(rows, widths):
    """Ranges of neighbours that fit into one block of hashed words, each as wide as the widest of its range."""
    first = 0
    for last in range(1, len(rows) + 1):
        if last == len(rows) or sum(rows[first : last + 1]) * max(widths[first : last + 1]) > 4 * HASHED_WORDS:
            yield range(first, last)
            first = last


def mix(word):
    """splitmix64's finaliser on one Python integer below 2**64."""
    word = (word ^ word >> 30) * FIRST & WORD
    word = (word ^ word >> 27) * SECOND & WORD
    return word ^ word >> 31


def hash_key(seed, step, site):
    """One 64-bit key for (seed, step, site)."""
    seed, step, site = map(index, (seed, step, site))  # NumPy's integers would overflow where Python's grow
    key = mix(seed + GOLDEN & WORD)
    for number in (step, site):
        key = mix(key ^ mix((number + 1) * GOLDEN & WORD))
    return key


def keep_mask(key, labels, width, threshold):
    """bool (rows, width): lane(key, label, column) >= threshold, with labels uint64 (rows,).

    On the host the hash runs block by block so that its words stay in cache; on a device it is one kernel, which
    computes the same bits.
    """
    if not on_host(labels):
        return _keep_mask_kernel(key, labels, width, threshold)
    words = -(-width // 4)
    row_hash = labels * np.uint64(GOLDEN)
    row_hash ^= np.uint64(key)
    _mix_in_place(row_hash, np.empty_like(row_hash))
    column = np.arange(words, dtype=np.uint64)
    column *= np.uint64(GOLDEN)
    keep = np.empty((len(labels), 4 * words), dtype=bool)
    step = max(1, HASHED_WORDS // words)
    word = np.empty((min(step, len(labels)), words), dtype=np.uint64)
    scratch = np.empty_like(word)
    for start in range(0, len(labels), step):
        rows = slice(start, min(start + step, len(labels)))
        part = word[: rows.stop - rows.start]
        np.add(row_hash[rows, None], column, out=part)
        _mix_in_place(part, scratch[: len(part)])
        np.greater_equal(part.view(np.uint16), np.uint16(threshold), out=keep[rows])
    return keep[:, :width]


def _mix_in_place(word, scratch):
    for shift, factor in ((30, FIRST), (27, SECOND)):
        np.right_shift(word, np.uint64(shift), out=scratch)
        word ^= scratch
        word *= np.uint64(factor)
    np.right_shift(word, np.uint64(31), out=scratch)
    word ^= scratch


# The same arithmetic for one element i of the mask, in C; unsigned 64-bit words wrap around there as they do in NumPy.
KERNEL = {
    "inputs": "raw uint64 labels, uint64 key, uint64 threshold, int64 width",
    "outputs": "bool keep",
    "name": "keep_mask",
    "preamble": f"""
__device__ unsigned long long splitmix(unsigned long long word) {{
    word = (word ^ (word >> 30)) * {FIRST}ULL;
    word = (word ^ (word >> 27)) * {SECOND}ULL;
    return word ^ (word >> 31);
}}
""",
    "body": f"""
    unsigned long long column = i % width;
    unsigned long long row = splitmix((labels[i / width] * {GOLDEN}ULL) ^ key);
    unsigned long long word = splitmix(row + (column / 4) * {GOLDEN}ULL);
    keep = ((word >> (16 * (column % 4))) & 0xFFFF) >= threshold;
""",
}


def _keep_mask_kernel(key, labels, width, threshold):
    xp = array_module(labels)
    keep = xp.empty((len(labels), width), dtype=bool)
    return elementwise_kernel(xp, **KERNEL)(labels, np.uint64(key), np.uint64(threshold), width, keep)
