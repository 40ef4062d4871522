"""What else one set of embeddings serves: near-duplicates, clusters, and labels by their description.

All three compare unit rows. Letters: n rows, D width, C clusters or labels.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .backend import array_module, to_host
from .errors import InputError
from .inputs import require_count, require_width, unit_rows

ROUNDING = 8  # eps of the precision: by how much the cosine of equal rows may miss 1


def near_duplicates(embeddings, cosine):
    """Pairs (p, 2) of rows i < j with a cosine of at least `cosine`, sorted, and the group (n,) of every row.

    Groups are the connected components of the pairs, numbered by their first row: a chain a ~ b ~ c is one group even
    where a and c are not alike, which is what to look at before anything is deleted. A pair may miss `cosine` by
    ROUNDING eps (1e-6 in float32, 2e-15 in float64): in rounded numbers equal rows may have a cosine below 1.
    Raises InputError for a cosine outside [-1, 1] and as `inputs.unit_rows` does.
    """
    if not -1 <= cosine <= 1:
        raise InputError(f"cosine is {cosine}; expected a number from -1 to 1")
    rows = unit_rows(embeddings)
    xp = array_module(rows)
    least = cosine - ROUNDING * float(np.finfo(rows.dtype).eps)
    i, j = (to_host(a) for a in xp.nonzero(xp.triu(rows @ rows.T >= least, 1)))
    n = len(rows)
    _, label = connected_components(coo_array((np.ones(len(i)), (i, j)), shape=(n, n)), directed=False)
    _, first = np.unique(label, return_index=True)
    number = np.empty(len(first), int)
    number[np.argsort(first)] = np.arange(len(first))
    return np.stack([i, j], axis=1), number[label]


@dataclass(frozen=True)
class Clusters:
    """label (n,): the nearest of the centres (C, D), unit rows; objective: mean cosine of a row with the centre of its
    label, before the first round and after each."""

    label: np.ndarray
    centres: np.ndarray
    objective: np.ndarray


def spherical_kmeans(embeddings, clusters, seed=0, rounds=50, starts=4):
    """Clusters of unit rows: assign each to the centre of largest cosine, centre = mean of its rows at unit length.

    Both steps raise sum_i cos(x_i, centre of i), so it converges. Centres start from rows drawn far apart (probability
    proportional to 1 - cos with the nearest centre so far); the best of `starts` tries is returned. A cluster that
    loses its rows keeps its centre. A try ends when no row changes its cluster, at the latest after `rounds` new sets
    of centres. Raises InputError for counts below 1, more clusters than rows, and as `inputs.unit_rows` does.
    Source: Dhillon and Modha 2001; the start after Arthur and Vassilvitskii 2007.
    """
    rows = to_host(unit_rows(embeddings))
    for name, value in (("clusters", clusters), ("rounds", rounds), ("starts", starts)):
        require_count(name, value)
    if clusters > len(rows):
        raise InputError(f"{clusters} clusters of {len(rows)} rows cannot be made")
    rng = np.random.default_rng(seed)
    tries = [_one_start(rows, clusters, rng, rounds) for _ in range(starts)]
    return max(tries, key=lambda found: found.objective[-1])


def _one_start(rows, clusters, rng, rounds):
    centres = rows[[rng.integers(len(rows))]]
    while len(centres) < clusters:
        gap = np.maximum(1 - (rows @ centres.T).max(axis=1), 0) + 1e-12
        centres = np.concatenate([centres, rows[[rng.choice(len(rows), p=gap / gap.sum())]]])
    label, value = _assign(rows, centres)
    objective = [value]
    for _ in range(rounds):
        sums = np.zeros_like(centres)
        np.add.at(sums, label, rows)
        length = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(length > 0, sums / np.where(length > 0, length, 1), centres)
        before, (label, value) = label, _assign(rows, centres)
        objective.append(value)
        if (label == before).all():
            break
    return Clusters(label, centres, np.array(objective))


def _assign(rows, centres):
    """(number of the nearest centre (n,), mean cosine with it)."""
    cosines = rows @ centres.T
    return cosines.argmax(axis=1), cosines.max(axis=1).mean()


def zero_shot(embeddings, label_embeddings):
    """Number (n,) of the label whose description is nearest, and its lead (n,): best minus second-best cosine.

    label_embeddings (C, D): the encoded descriptions. Equal cosines go to the first label. The lead is not a
    probability; it says which answers to read first. Raises InputError for fewer than two labels, two widths, and as
    `inputs.unit_rows` does: a row of NaN would be given the first label.
    """
    rows, labels = unit_rows(embeddings), unit_rows(label_embeddings, "label_embeddings")
    if len(labels) < 2:
        raise InputError(f"zero-shot labels need at least two descriptions, got {len(labels)}")
    require_width("embeddings", rows, "the labels are", labels.shape[1])
    cosines = rows @ labels.T
    ordered = array_module(cosines).sort(cosines, axis=1)
    return cosines.argmax(axis=1), ordered[:, -1] - ordered[:, -2]
