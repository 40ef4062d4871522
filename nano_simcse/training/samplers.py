"""Which texts form step k: a pure function of (seed, k), so that a resumed run sees what an uninterrupted one sees.

Each epoch is one permutation of the examples, drawn from (seed, epoch); a step takes the next `batch` of them, and
what is left at the end of an epoch, less than a batch, is dropped: a short batch would be an easier quiz.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..masks import row_labels

CROP_SHARE = (0.2, 0.8)  # length of a crop, as a share of its text
CROP_LEAST = 4  # tokens


@dataclass(frozen=True)
class Step:
    """Inputs of one step: V views of B rows, view after view.

    rows: V * B token rows; labels: their mask labels; views: V; exclude: bool (B, candidates) or None, True where
    another row's key is the same text as this row's own and so no negative; texts: int (B, V), the texts by number.
    """

    rows: list
    labels: object
    views: int
    exclude: object
    texts: object = None


def require_batch(examples, batch):
    """Raise InputError where there are fewer examples than a batch."""
    if len(examples) < batch:
        raise InputError(f"there are {len(examples)} usable training examples, fewer than a batch of {batch}")


class Sampler:
    """Batches of examples; an example is a tuple of V texts given by number.

    rows: token rows of the distinct texts; examples: int array (n, V) of numbers of rows: one column for dropout
    and crop, two for pairs, three for triples; positives: "dropout", "pairs" or "crop"; batch: B.
    Raises InputError where there are fewer examples than a batch.
    """

    def __init__(self, rows, examples, positives, batch, seed, cls_id=0, sep_id=0):
        require_batch(examples, batch)
        self.rows, self.examples, self.positives = rows, np.asarray(examples), positives
        self.batch, self.seed, self.ends = batch, seed, (cls_id, sep_id)
        self.steps_per_epoch = len(examples) // batch
        self._epoch, self._order = -1, None

    def step(self, k):
        """The Step number k, counted from 0."""
        epoch, place = divmod(k, self.steps_per_epoch)
        if epoch != self._epoch:
            generator = np.random.default_rng([self.seed, epoch])
            self._epoch, self._order = epoch, generator.permutation(len(self.examples))
        chosen = self.examples[self._order[place * self.batch : (place + 1) * self.batch]]
        numbers = chosen if self.positives == "pairs" else np.repeat(chosen[:, :1], 2, axis=1)
        rows = [self.rows[i] for i in numbers.T.reshape(-1)]
        if self.positives == "crop":
            generator = np.random.default_rng([self.seed, k, 1])
            rows = [random_window(row, generator, self.ends) for row in rows]
        views = numbers.shape[1]
        labels = row_labels(np.tile(np.arange(self.batch), views), np.repeat(np.arange(views), self.batch))
        return Step(rows, labels, views, known_duplicates(numbers), numbers)


def random_window(row, generator, ends):
    """A contiguous window of a token row, [CLS] and [SEP] put back around it; short texts stay whole."""
    inner = row[1:-1]
    if len(inner) <= CROP_LEAST:
        return row
    share = generator.uniform(*CROP_SHARE)
    length = max(CROP_LEAST, round(share * len(inner)))
    start = generator.integers(0, len(inner) - length + 1)
    return np.concatenate(([ends[0]], inner[start : start + length], [ends[1]])).astype(row.dtype)


def known_duplicates(numbers):
    """Candidates that are the same text as a row's own anchor or positive, bool (B, candidates); None for none.

    numbers (B, V): texts by number; the candidates are the second column, then the third.
    """
    ordered = np.sort(numbers, axis=1)
    new = np.concatenate([np.ones((len(numbers), 1), bool), ordered[:, 1:] != ordered[:, :-1]], axis=1)
    if numbers.shape[1] == 2 and len(np.unique(ordered)) == np.count_nonzero(new):
        return None  # no two rows share a text: seen without a (B, B) array
    candidates = np.concatenate([numbers[:, i] for i in range(1, numbers.shape[1])])
    anchors, positives = numbers[:, 0], numbers[:, 1]
    same = (candidates == anchors[:, None]) | (candidates == positives[:, None])
    # a positive whose anchor is this anchor too answers this query as well
    same[:, : len(numbers)] |= anchors[:, None] == anchors
    same[np.arange(len(numbers)), np.arange(len(numbers))] = False
    return same if same.any() else None
