"""Exact search, a block of documents at a time: the truth that every index is measured against.

One matrix product for each block; a document is looked at again only if it beats the k-th best that its query has
so far. What is kept beside the vectors is one block of scores and the few candidates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.stores.base import SIMILARITY_DIGITS
from providers.base import Vectors

BLOCK = 4096  # documents in one product
QUERIES = 1024  # queries in one product: with the above, 16 MB of scores
TOLERANCE = 10.0**-SIMILARITY_DIGITS

Rows = NDArray[np.int64]
Similarities = NDArray[np.float32]


def nearest(queries: Vectors, vectors: Vectors, k: int) -> tuple[Rows, Similarities]:
    """For each query the k rows with the highest inner product, best first, and equal ones by row."""
    k = min(k, len(vectors))
    rows, scores = np.empty((len(queries), k), dtype=np.int64), np.empty((len(queries), k), dtype=np.float32)
    if k:
        for start in range(0, len(queries), QUERIES):
            part = slice(start, start + QUERIES)
            rows[part], scores[part] = _nearest(np.ascontiguousarray(queries[part]), vectors, k)
    return rows, scores


def _nearest(queries: Vectors, vectors: Vectors, k: int) -> tuple[Rows, Similarities]:
    first = min(max(BLOCK, k), len(vectors))
    best = _Best(queries @ vectors[:first].T, k)
    scores = np.empty((len(queries), BLOCK), dtype=np.float32)
    beats = np.empty((len(queries), BLOCK), dtype=bool)
    for start in range(first, len(vectors), BLOCK):
        block = vectors[start : start + BLOCK]
        if len(block) < BLOCK:
            shape = (len(queries), len(block))
            scores, beats = np.empty(shape, dtype=np.float32), np.empty(shape, dtype=bool)
        np.matmul(queries, block.T, out=scores)
        np.greater(scores, best.threshold, out=beats)
        best.offer(np.flatnonzero(beats), scores, start)
    return best.sorted()


class _Best:
    """The k best of each query so far, and candidates that are sorted in when they have become as many."""

    def __init__(self, scores: Similarities, k: int) -> None:
        self.k, self.queries = k, len(scores)
        self._rows = np.argpartition(-scores, k - 1, axis=1)[:, :k].astype(np.int64)
        self._scores = np.take_along_axis(scores, self._rows, axis=1)
        self.threshold = self._scores.min(axis=1, keepdims=True)
        self._pending: list[tuple[Rows, Rows, Similarities]] = []
        self._count = 0

    def offer(self, places: Rows, scores: Similarities, start: int) -> None:
        """Places within a block of scores that begins at row `start`."""
        if not len(places):
            return
        query, column = np.divmod(places, scores.shape[1])
        self._pending.append((query, column + start, scores.ravel()[places]))
        self._count += len(places)
        if self._count >= self.k * self.queries:
            self._settle()

    def sorted(self) -> tuple[Rows, Similarities]:
        """Best first."""
        self._settle()
        order = np.lexsort((self._rows, -self._scores), axis=1)
        return np.take_along_axis(self._rows, order, axis=1), np.take_along_axis(self._scores, order, axis=1)

    def _settle(self) -> None:
        """Lays each query's candidates out in a row of their own, beside its best, and keeps the k best of both."""
        if not self._count:
            return
        query, rows, scores = (np.concatenate(parts) for parts in zip(*self._pending, strict=True))
        self._pending, self._count = [], 0
        order = np.argsort(query, kind="stable")
        counts = np.bincount(query, minlength=self.queries)
        column = np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts) + self.k
        wide = self.k + int(counts.max())
        all_rows = np.zeros((self.queries, wide), dtype=np.int64)
        all_scores = np.full((self.queries, wide), -np.inf, dtype=np.float32)
        all_rows[:, : self.k], all_scores[:, : self.k] = self._rows, self._scores
        all_rows[query[order], column], all_scores[query[order], column] = rows[order], scores[order]
        kept = np.argpartition(-all_scores, self.k - 1, axis=1)[:, : self.k]
        self._rows = np.take_along_axis(all_rows, kept, axis=1)
        self._scores = np.take_along_axis(all_scores, kept, axis=1)
        self.threshold = self._scores.min(axis=1, keepdims=True)


def recall(found: NDArray[np.floating], last: float, wanted: int) -> float:
    """How many of the `wanted` nearest came back, by their exact scores: one that ties with the last counts too."""
    if not wanted:
        return 1.0
    return min(int(np.count_nonzero(found >= last - TOLERANCE)), wanted) / wanted
