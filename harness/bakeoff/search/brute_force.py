"""Exact search, a block of documents at a time: what every index is measured against.

One matrix product for each block; a document is looked at again only if it beats the k-th best that its query has
so far. What is kept beside the vectors is one block of scores and the few candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
from bakeoff_providers.base import Vectors
from numpy.typing import NDArray

from bakeoff.core.progress import Advance, steps
from bakeoff.embedding.vector_rows import VectorRows
from bakeoff.search.hits import SIMILARITY_DIGITS

FIRST = 1024  # documents that set the first threshold
BLOCK = 4096  # documents in one product
QUERIES = 1024  # queries in one product: with the above, 16 MB of scores
TOLERANCE = 10.0**-SIMILARITY_DIGITS

Rows = NDArray[np.int64]
Similarities = NDArray[np.float32]
Nearest = Callable[[Vectors, "Vectors | VectorRows", int], tuple[Rows, Similarities]]


def nearest(queries: Vectors, vectors: Vectors | VectorRows, k: int) -> tuple[Rows, Similarities]:
    """For each query the k rows with the highest inner product, best first, and equal ones by row."""
    return nearest_within(queries, vectors, k, block_bounds(len(vectors), k))


def block_bounds(rows: int, k: int) -> list[int]:
    """Where one product ends and the next begins: a part of a search must have the products of the whole one."""
    first = min(max(FIRST, k), rows)
    return [0, *range(first, rows, BLOCK), rows] if rows else [0]


def nearest_within(
    queries: Vectors, vectors: Vectors | VectorRows, k: int, bounds: Sequence[int]
) -> tuple[Rows, Similarities]:
    """The nearest among consecutive blocks; rows are numbered as in the whole."""
    k = min(k, bounds[-1] - bounds[0])
    rows, scores = np.empty((len(queries), k), dtype=np.int64), np.empty((len(queries), k), dtype=np.float32)
    if not k:
        return rows, scores
    parts = [slice(start, start + QUERIES) for start in range(0, len(queries), QUERIES)]
    with steps("exact search: documents", len(parts) * (bounds[-1] - bounds[0])) as advance:
        for part in parts:
            rows[part], scores[part] = _nearest(np.ascontiguousarray(queries[part]), vectors, k, bounds, advance)
    return rows, scores


def merged(parts: Sequence[tuple[Rows, Similarities]], k: int) -> tuple[Rows, Similarities]:
    """The nearest of all from the nearest of each part, the parts in the order of their rows."""
    rows, scores = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _nearest(
    queries: Vectors, vectors: Vectors | VectorRows, k: int, bounds: Sequence[int], advance: Advance
) -> tuple[Rows, Similarities]:
    best = _Best(queries @ vectors[bounds[0] : bounds[1]].T, k, bounds[0])
    advance(bounds[1] - bounds[0])
    scores = np.empty((len(queries), BLOCK), dtype=np.float32)
    beats = np.empty((len(queries), BLOCK), dtype=bool)
    for start, end in pairwise(bounds[1:]):
        block = vectors[start:end]
        if len(block) < BLOCK:
            shape = (len(queries), len(block))
            scores, beats = np.empty(shape, dtype=np.float32), np.empty(shape, dtype=bool)
        np.matmul(queries, block.T, out=scores)
        np.greater(scores, best.threshold, out=beats)
        best.offer(np.flatnonzero(beats), scores, start)
        advance(end - start)
    return best.sorted()


class _Best:
    """Candidates of each query, in the order of their rows; all but the k best are let go when they have doubled."""

    def __init__(self, scores: Similarities, k: int, start: int) -> None:
        self.k, self.queries = k, len(scores)
        self.threshold = _kth(scores, k)
        self._candidates: list[tuple[NDArray[np.int16], Rows, Similarities]] = []
        self._count = 0
        self.offer(np.flatnonzero(scores >= self.threshold), scores, start)

    def offer(self, places: NDArray[np.intp], scores: Similarities, start: int) -> None:
        """Places within a block of scores that begins at row `start`."""
        query, column = np.divmod(places, scores.shape[1])
        self._candidates.append((query.astype(np.int16), column + start, scores.ravel()[places]))
        self._count += len(places)
        if self._count >= 2 * self.k * self.queries and len(self._candidates) > 1:
            self._settle()

    def sorted(self) -> tuple[Rows, Similarities]:
        """Best first; equal ones stay in the order of their rows."""
        query, rows, scores, place = self._laid_out()
        wide = np.full((self.queries, int(place.max()) + 1), -np.inf, dtype=np.float32)
        wide[query, place] = scores
        numbers = np.zeros(wide.shape, dtype=np.int64)
        numbers[query, place] = rows
        order = np.argsort(-wide, axis=1, kind="stable")[:, : self.k]
        return np.take_along_axis(numbers, order, axis=1), np.take_along_axis(wide, order, axis=1)

    def _settle(self) -> None:
        query, rows, scores, place = self._laid_out()
        wide = np.full((self.queries, int(place.max()) + 1), -np.inf, dtype=np.float32)
        wide[query, place] = scores
        self.threshold = _kth(wide, self.k)
        kept = scores >= self.threshold[query, 0]
        self._candidates = [(query[kept], rows[kept], scores[kept])]
        self._count = int(np.count_nonzero(kept))

    def _laid_out(self) -> tuple[NDArray[np.int16], Rows, Similarities, Rows]:
        """All candidates by query, and each one's place among those of its query."""
        query, rows, scores = (np.concatenate(parts) for parts in zip(*self._candidates, strict=True))
        order = np.argsort(query, kind="stable")
        counts = np.bincount(query, minlength=self.queries)
        place = np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)
        return query[order], rows[order], scores[order], place


def _kth(scores: Similarities, k: int) -> Similarities:
    """The k-th best score of each row, as a column; where there are fewer, anything beats it."""
    if scores.shape[1] < k:
        return np.full((len(scores), 1), -np.inf, dtype=np.float32)
    at = scores.shape[1] - k
    return np.partition(scores, at, axis=1)[:, at : at + 1]


def recall_of_rows(rows: Rows, query: Vectors, vectors: Vectors, nearest: Rows, scores: Similarities) -> float:
    """Of one query's nearest rows, the share that an index returned; `scores` are theirs, best first."""
    last = float(scores[-1]) if len(scores) else np.inf
    return recall(vectors[rows] @ query, last, len(nearest), np.isin(rows, nearest))


def recall(
    scores: NDArray[np.floating], last: float, wanted: int, listed: NDArray[np.bool_] | Literal[False] = False
) -> float:
    """How many of the `wanted` nearest came back: those that exact search listed, and those that tie with its last.

    Never less than by id alone: a score that is worked out a second time may differ in its last bits.
    """
    if not wanted:
        return 1.0
    return min(int(np.count_nonzero(np.logical_or(listed, scores >= last - TOLERANCE))), wanted) / wanted
