"""What is measured of one cloud of embeddings."""

from dataclasses import asdict, dataclass

import numpy as np

from ..data.readers import is_rated, read_training_file
from ..data.records import form_of
from ..errors import InputError
from ..evaluation import Embedded, evaluate_sts
from ..geometry import (
    alignment,
    collapse_guard,
    coordinate_shares,
    entropy_rank,
    even_uniformity,
    max_pair_cosine,
    mean_pair_cosine,
    norm_of_mean,
    uniformity,
    unit_rows,
    variance_shares,
)
from ..protocol import ALIKE, read_set

MOST = 5000  # sentences measured: every measure of pairs grows with their square


@dataclass(frozen=True)
class Text:
    """sentences: distinct strings; left, right: rows of the positive pairs among them, empty where there are none;
    rated: list[STSPair] or None; total: sentences in the file, of which those above may be a sample."""

    sentences: list
    left: np.ndarray
    right: np.ndarray
    rated: list | None = None
    total: int = 0


@dataclass(frozen=True)
class Coordinate:
    """index: of the embedding; share: of the squared length of unit rows; constant: the part of that share which is
    the coordinate's mean, (mean u)^2 / mean u^2, 1 where it is one number in every row."""

    index: int
    share: float
    constant: float


@dataclass(frozen=True)
class CloudReport:
    """The measures of one cloud; `geometry` defines them. None: not known for want of pairs or scores.

    first_share, centred_first_share: of the squared length and of the variance, in the leading direction;
    coordinates: the three with most of the squared length; collapse: reasons, empty where there is none; sts: Spearman
    x 100.
    """

    rows: int
    width: int
    sts: float | None
    alignment: float | None
    uniformity: float
    even_uniformity: float
    mean_pair_cosine: float
    max_pair_cosine: float
    norm_of_mean: float
    effective_rank: float
    centred_effective_rank: float
    first_share: float
    centred_first_share: float
    coordinates: tuple
    collapse: tuple

    def as_dict(self):
        return asdict(self)


def read_text(path, seed=0):
    """The Text of a file: sentences, pairs or triples of a training file, or rated STS pairs.

    Positives are the pairs, or of rated pairs those scored above ALIKE. Of more than MOST sentences without pairs,
    MOST are drawn from `seed`; of more pairs, as many as hold about so many sentences, rated ones never.
    Raises InputError for fewer than two distinct sentences or pairs, and as the readers do.
    """
    if form_of(path) == "text":
        rows = list(dict.fromkeys(read_training_file(path).rows))
        if len(rows) < 2:
            raise InputError(f"{path} holds 1 distinct sentence; a geometry needs at least 2")
        none = np.zeros(0, int)
        return Text(_sample(rows, MOST, seed), none, none, total=len(rows))
    if is_rated(path):
        rated = read_set(path, rated=True)
        pairs, alike = [(p.sentence1, p.sentence2) for p in rated], [p.score > ALIKE for p in rated]
    else:
        text = read_training_file(path)
        if len(text.rows) < 2:
            raise InputError(f"{path} holds 1 {text.kind.removesuffix('s')}; a geometry needs at least 2")
        rated, pairs = None, [row[:2] for row in text.rows]
        alike = [True] * len(pairs)
    total = len({sentence for pair in pairs for sentence in pair})
    if rated is None:
        pairs = _sample(pairs, MOST // 2, seed)
    place = {}
    rows = np.array([[place.setdefault(sentence, len(place)) for sentence in pair] for pair in pairs])
    left, right = rows[np.array(alike[: len(rows)])].T
    return Text(list(place), left, right, rated, total)


def cloud_report(x, text):
    """CloudReport of embeddings x (N, D) of the sentences of `text`. Raises InputError for a zero or non-finite row."""
    x = unit_rows(x)
    plain, centred = variance_shares(x), variance_shares(x, centre=True)
    sts = evaluate_sts(Embedded(text.sentences, x), text.rated)["spearman"] if text.rated else None
    return CloudReport(
        rows=len(x),
        width=x.shape[1],
        sts=sts,
        alignment=alignment(x[text.left], x[text.right]) if len(text.left) else None,
        uniformity=uniformity(x),
        even_uniformity=even_uniformity(x.shape[1]),
        mean_pair_cosine=mean_pair_cosine(x),
        max_pair_cosine=max_pair_cosine(x),
        norm_of_mean=norm_of_mean(x),
        effective_rank=entropy_rank(plain),
        centred_effective_rank=entropy_rank(centred),
        first_share=float(plain[0]),
        centred_first_share=float(centred[0]),
        coordinates=_coordinates(x),
        collapse=collapse_guard(x).reasons,
    )


def _coordinates(x):
    shares, means = coordinate_shares(x), x.mean(axis=0)
    largest = np.argsort(-shares, kind="stable")[:3]
    return tuple(Coordinate(int(d), float(shares[d]), float(means[d] ** 2 / shares[d])) for d in largest if shares[d])


def _sample(rows, most, seed):
    if len(rows) <= most:
        return rows
    return [rows[i] for i in np.sort(np.random.default_rng(seed).permutation(len(rows))[:most])]
