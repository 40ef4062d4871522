"""Indexes that know which encoder their vectors came from, and refuse to compare them with any other's.

`nano_simcse.retrieval` scores plain arrays; an index here is the thing a service holds open. It is stamped with a
version (`SentenceEncoder.fingerprint()`, or any string), checks it on every addition and every search, checks the
metric once, and can be closed. Two kinds answer alike: `ExactIndex`, and `ApproximateIndex` on usearch, whose misses
`recall_gap` measures.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .errors import InputError, MetricMismatch, StaleIndex
from .inputs import is_whole, listed, number_rows, require_width, unit_rows
from .retrieval import DenseIndex, top_k

METRICS = ("cosine", "inner product")
UNIT_TOLERANCE = 1e-3  # of a row's length, for an index by inner product: float16 rows still pass


class _Index:
    """What both kinds share: rows of one version under one metric, open until closed."""

    _options: ClassVar[dict] = {}  # what `replace` hands to the constructor besides

    def __init__(self, embeddings, version: str, metric: str = "cosine"):
        """embeddings (n, D), n >= 1; version: of the encoder that made them; metric: "cosine", or "inner product",
        which is the same thing for rows of unit length and is refused for others.

        Raises MetricMismatch, or InputError as `DenseIndex` does.
        """
        if not version or not isinstance(version, str):
            raise InputError(f"version is {version!r}; expected the fingerprint of the encoder, a string")
        check_metric(embeddings, metric)
        self.version, self.metric = version, metric
        unit = unit_rows(embeddings, "embeddings")
        if not len(unit):
            raise InputError("the corpus is empty: an index needs at least one embedding")
        self._count, self._width = 0, unit.shape[1]
        self._open(unit)
        self._count = len(unit)

    def __len__(self):
        """Number of rows, 0 once closed."""
        return self._count

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Let go of the vectors; a second call does nothing, every other use afterwards raises InputError."""
        self._release()
        self._count = 0

    def search(self, queries, k: int, version: str):
        """The k nearest rows of every query: (rows (q, k') int64, cosines (q, k')), k' = min(k, n), best first.

        queries (q, D), q >= 0, made by the encoder `version`. Raises StaleIndex where the index holds rows of another
        version, MetricMismatch for queries that are not of unit length under "inner product", InputError when closed,
        for another width, and as `unit_rows` does.
        """
        self._require_open()
        self._require(version, "queries")
        check_metric(queries, self.metric)
        if not is_whole(k, 1):
            raise InputError(f"k must be an integer >= 1, got {k!r}.")
        return self._search(self._unit_rows(queries, "queries"), min(k, self._count))

    def add(self, embeddings, version: str):
        """Append rows (m, D) of the same version; returns their row numbers. Raises as `search` does."""
        self._require_open()
        self._require(version, "rows")
        check_metric(embeddings, self.metric)
        unit = self._unit_rows(embeddings, "embeddings")
        self._extend(unit)
        first, self._count = self._count, self._count + len(unit)
        return np.arange(first, self._count)

    def replace(self, embeddings, version: str):
        """Put the whole corpus, embedded anew by another encoder, in place of the old rows.

        A new encoder and a new index are one operation: any other number of rows is refused with StaleIndex. Of fewer,
        the rest would stay behind in the space of the old encoder; more are no longer the corpus that is indexed.
        """
        self._require_open()
        if len(embeddings) < self._count:
            raise StaleIndex(
                f"{len(embeddings)} of {self._count} rows were embedded by {version}; the rest would stay with "
                f"{self.version}, so embed the whole corpus"
            )
        if len(embeddings) > self._count:
            raise StaleIndex(
                f"{len(embeddings)} rows were embedded by {version}, but the index holds {self._count}; replace these "
                f"first, then add the others"
            )
        fresh = type(self)(embeddings, version, self.metric, **self._options)
        self.__dict__.update(fresh.__dict__)

    def _unit_rows(self, x, name):
        unit = unit_rows(x, name)
        require_width(name, unit, "the index holds", self._width)
        return unit

    def _require_open(self):
        if not self._count:
            raise InputError("the index is closed; build or load it again")

    def _require(self, version, what):
        if version != self.version:
            raise StaleIndex(f"the index holds rows of encoder {self.version}, the {what} come from {version}")


class ExactIndex(_Index):
    """Every query against every row; equal scores in order of the row number, to the bit.

    >>> with ExactIndex(np.array([[1.0, 0.0], [3.0, 3.0], [2.0, 0.0]]), version="a1") as index:
    ...     index.search(np.array([[1.0, 0.0]]), 2, version="a1")[0].tolist()
    [[0, 2]]
    """

    def _open(self, unit):
        self._unit, self._dense = unit, DenseIndex(unit)

    def _extend(self, unit):
        self._open(np.concatenate([self._unit, unit]))

    def _release(self):
        self._unit = self._dense = None

    def _search(self, queries, k):
        scores = self._dense.score_matrix(queries)
        rows = top_k(scores, k)
        return rows, np.take_along_axis(scores, rows, axis=1)


class ApproximateIndex(_Index):
    """A graph of near neighbours (HNSW, from usearch): a search looks at a small part of the rows and may miss some.

    connectivity: edges of a node; build_effort and search_effort: how many candidates are kept in view while adding
    and searching (more is slower and misses less). One thread, so that the same rows give the same graph. Where a walk
    ends with fewer than k rows, the rest is row -1 with cosine -inf.
    Raises InputError, naming the extra, where usearch is not installed.
    Source: Malkov and Yashunin, arXiv 1603.09320.
    """

    def __init__(self, embeddings, version, metric="cosine", *, connectivity=16, build_effort=128, search_effort=64):
        self._options = {
            "connectivity": connectivity, "build_effort": build_effort, "search_effort": search_effort,
        }  # fmt: skip
        super().__init__(embeddings, version, metric)

    def _open(self, unit):
        try:
            from usearch.index import Index
        except ImportError as error:
            raise InputError(
                f"an approximate index needs usearch ({error}); pip install 'nano_simcse[approximate]'"
            ) from None
        connectivity, build, search = self._options.values()
        self._graph = Index(
            ndim=unit.shape[1], metric="ip", dtype="f32",
            connectivity=connectivity, expansion_add=build, expansion_search=search,
        )  # fmt: skip
        self._extend(unit)

    def _extend(self, unit):
        keys = np.arange(self._count, self._count + len(unit))
        self._graph.add(keys, np.ascontiguousarray(unit, dtype=np.float32), threads=1)

    def _release(self):
        if getattr(self, "_graph", None) is not None:
            self._graph.reset()
        self._graph = None

    def _search(self, queries, k):
        if not len(queries):
            return np.empty((0, k), np.int64), np.empty((0, k), np.float32)
        found = self._graph.search(np.ascontiguousarray(queries, dtype=np.float32), k, threads=1)
        columns = np.asarray(found.keys).size // len(queries)
        counts = np.atleast_1d(getattr(found, "counts", columns))  # a graph walk may end with fewer than k rows
        missing = np.arange(columns) >= counts[:, None]
        keys = np.where(missing, -1, np.asarray(found.keys).reshape(-1, columns).astype(np.int64))
        cosines = np.where(missing, -np.inf, 1 - np.asarray(found.distances).reshape(-1, columns))
        order = np.lexsort((keys, -cosines), axis=1)  # usearch leaves ties in the order it met them
        return np.take_along_axis(keys, order, axis=1), np.take_along_axis(cosines, order, axis=1)


@dataclass(frozen=True)
class PrefixedEncoder:
    """An encoder with the words that must stand before a query and before a document: they are part of the model.

    encoder: has encode(list[str]) and fingerprint(). Its own fingerprint covers both prefixes, so an index built with
    them refuses queries that were embedded without. Both methods raise InputError for one string in place of a list.
    """

    encoder: object
    query: str = ""
    document: str = ""

    def encode_queries(self, texts: Sequence[str]):
        """Embeddings of queries, each after the query prefix: (n, D)."""
        return self.encoder.encode([self.query + text for text in listed(texts)])

    def encode_documents(self, texts: Sequence[str]):
        """Embeddings of documents, each after the document prefix: (n, D)."""
        return self.encoder.encode([self.document + text for text in listed(texts)])

    def fingerprint(self):
        """Hex digest of the encoder and both prefixes."""
        parts = repr((self.encoder.fingerprint(), self.query, self.document))
        return hashlib.sha256(parts.encode()).hexdigest()[:16]


def check_metric(embeddings, metric):
    """Raise MetricMismatch unless `metric` ranks as the cosine does: "cosine", or "inner product" of unit rows; for
    the latter also InputError unless they are finite numbers."""
    if metric not in METRICS:
        raise MetricMismatch(f"metric {metric!r} is not {' or '.join(METRICS)}, and the losses train the cosine")
    if metric == "inner product":
        lengths = np.linalg.norm(number_rows("embeddings", embeddings).astype(np.float64), axis=1)
        off = np.abs(lengths - 1) > UNIT_TOLERANCE
        if off.any():
            row = int(off.argmax())
            raise MetricMismatch(
                f"row {row} has length {lengths[row]:.4g}; an inner product ranks as the cosine only for length 1"
            )


def recall_gap(found, exact):
    """1 - the mean share of the exact k nearest rows that were found, in [0, 1].

    found, exact (q, k): row numbers of an approximate and of the exact search, k of the approximate one >= that of the
    exact one. What an evaluation by exact search overstates.
    """
    found, exact = np.asarray(found), np.asarray(exact)
    if found.ndim != 2 or exact.ndim != 2 or len(found) != len(exact) or 0 in exact.shape:
        raise InputError(f"found {found.shape} and exact {exact.shape} must be (q, k) row numbers of the same queries")
    hits = [np.isin(e, f).mean() for f, e in zip(found, exact, strict=True)]
    return float(1 - np.mean(hits))


def rerank(rows, judge: Callable, k: int):
    """The k best of retrieved rows by a slower judge: first stage in, second stage out.

    rows (q, cutoff) from a search; judge(query number, row numbers (c,)) -> scores (c,), larger is better, for example
    a cross-encoder. Returns (q, min(k, cutoff)) row numbers, best first, ties in the order of the first stage.
    What the first stage did not retrieve cannot come back: report its recall at `cutoff`, not at k.
    """
    rows = np.asarray(rows)
    if rows.ndim != 2 or 0 in rows.shape:
        raise InputError(f"rows {rows.shape} must be (q, cutoff) row numbers")
    scores = np.array([np.asarray(judge(i, found), dtype=np.float64) for i, found in enumerate(rows)])
    if scores.shape != rows.shape:
        raise InputError(f"the judge gave scores of shape {scores.shape} for rows of shape {rows.shape}")
    return np.take_along_axis(rows, top_k(scores, k), axis=1)
