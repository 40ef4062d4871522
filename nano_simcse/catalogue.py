"""What a candidate list does for the whole catalogue: recall by popularity, coverage, and how exposure is shared.

A candidate list is int (users, K): the K items retrieved for each user. relevant is bool (users, items).
"""

import numpy as np

from .backend import array_module
from .errors import InputError
from .geometry import entropy_rank


def popularity_groups(counts, groups=3):
    """Group number (items,) of each item, 0 the most popular: the groups hold equal shares of all interactions.

    Items are taken in order of falling counts (items,), equal counts in order of their index; an item belongs to the
    group in which the middle of its interactions falls, so group 0 is the short head and the last one the long tail.
    """
    xp = array_module(counts)
    if counts.ndim != 1 or groups < 1 or not bool((counts >= 0).all()) or not bool(counts.sum() > 0):
        raise InputError(f"counts must be item counts >= 0 with a positive sum, got shape {counts.shape}")
    order = xp.argsort(-counts, kind="stable")
    middle = (xp.cumsum(counts[order]) - counts[order] / 2) / counts.sum()
    group = xp.zeros(len(counts), int)
    group[order] = xp.minimum((middle * groups).astype(int), groups - 1)
    return group


def recall_by_group(candidates, relevant, groups):
    """Percent of all relevant (user, item) pairs that are among the user's candidates: (groups + 1,).

    The last entry is over all items; nan for a group without a relevant item. groups (items,) as popularity_groups.
    """
    xp = array_module(relevant)
    found = relevant & listed(candidates, relevant.shape[1])
    result = []
    for members in [*(groups == g for g in range(int(groups.max()) + 1)), xp.ones(len(groups), bool)]:
        total = int(relevant[:, members].sum())
        result.append(100 * int(found[:, members].sum()) / total if total else float("nan"))
    return np.array(result)


def coverage(candidates, items):
    """Percent of the catalogue that stands in at least one user's list; K / items at least, 100 at most."""
    return 100 * float(listed(candidates, items).any(axis=0).mean())


def effective_items(candidates, items):
    """exp of the entropy of the items' shares of all list places: K where everyone gets one list, items where even."""
    xp = array_module(candidates)
    share = xp.bincount(candidates.ravel(), minlength=items) / candidates.size
    return entropy_rank(share)


def listed(candidates, items):
    """bool (users, items) of the lists. Raises InputError for an item number out of range."""
    xp = array_module(candidates)
    if candidates.ndim != 2 or int(candidates.min()) < 0 or int(candidates.max()) >= items:
        raise InputError(f"candidates {candidates.shape} must be (users, K) item numbers below {items}")
    table = xp.zeros((len(candidates), items), bool)
    table[xp.arange(len(candidates))[:, None], candidates] = True
    return table
