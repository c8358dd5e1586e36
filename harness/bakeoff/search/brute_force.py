"""Blockwise exact search, the reference for every index.

One matrix product per block. Only documents that beat the query's current k-th best become candidates. Besides the
vectors, memory holds one block of scores and the candidates.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from bakeoff_providers.base import Vectors
from numpy.typing import NDArray

from bakeoff.core.progress import Advance, steps
from bakeoff.embedding.vector_rows import VectorRows
from bakeoff.search.hits import SIMILARITY_DIGITS

FIRST = 1024  # documents for the first threshold
BLOCK = 4096  # documents in one product
QUERIES = 1024  # queries with scores in memory: 16 MB with the above
PART = 256  # queries in one product
TOGETHER = 64 * QUERIES  # queries per pass over the documents
TOLERANCE = 10.0**-SIMILARITY_DIGITS

Rows = NDArray[np.int64]
Similarities = NDArray[np.float32]
Nearest = Callable[[Vectors, "Vectors | VectorRows", int], tuple[Rows, Similarities]]


def nearest(queries: Vectors, vectors: Vectors | VectorRows, k: int) -> tuple[Rows, Similarities]:
    """For each query, the k rows with the highest inner product, best first; ties by row."""
    return nearest_within(queries, vectors, k, block_bounds(len(vectors), k))


def block_bounds(rows: int, k: int) -> list[int]:
    """Bounds of the blocks. A partial search must compute the same products as the whole one."""
    first = min(max(FIRST, k), rows)
    return [0, *range(first, rows, BLOCK), rows] if rows else [0]


def nearest_within(
    queries: Vectors, vectors: Vectors | VectorRows, k: int, bounds: Sequence[int]
) -> tuple[Rows, Similarities]:
    """The nearest rows in consecutive blocks; row numbers are those of the whole matrix."""
    k = min(k, bounds[-1] - bounds[0])
    rows, scores = np.empty((len(queries), k), dtype=np.int64), np.empty((len(queries), k), dtype=np.float32)
    if not k:
        return rows, scores
    parts = [slice(start, start + TOGETHER) for start in range(0, len(queries), TOGETHER)]
    with steps("exact search: documents", len(parts) * (bounds[-1] - bounds[0])) as advance:
        for part in parts:
            rows[part], scores[part] = _nearest(queries[part], vectors, k, bounds, advance)
    return rows, scores


class Merging:
    """Merges the nearest rows of parts, in any order."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.found: tuple[Rows, Similarities] | None = None

    def add(self, rows: Rows, scores: Similarities) -> None:
        """A part's; of equal scores the earlier row comes first."""
        if self.found is not None:
            rows = np.concatenate([self.found[0], rows], axis=1)
            scores = np.concatenate([self.found[1], scores], axis=1)
        order = np.lexsort((rows, -scores), axis=1)[:, : self.k]
        self.found = np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _nearest(
    queries: Vectors, vectors: Vectors | VectorRows, k: int, bounds: Sequence[int], advance: Advance
) -> tuple[Rows, Similarities]:
    """Reads each block of documents once, for all queries."""
    groups = [np.ascontiguousarray(queries[start : start + QUERIES]) for start in range(0, len(queries), QUERIES)]
    room = min(QUERIES, len(queries)) * BLOCK
    scores, beats = np.empty(room, dtype=np.float32), np.empty(room, dtype=bool)
    best: list[_Best] = []
    for start, end in pairwise(bounds):
        block = vectors[start:end]
        for number, group in enumerate(groups):
            if start == bounds[0]:
                best.append(_Best(_products(group, block), k, start))
                continue
            shape = len(group), len(block)
            products, better = (room[: shape[0] * shape[1]].reshape(shape) for room in (scores, beats))
            _products(group, block, products)
            np.greater(products, best[number].threshold, out=better)
            best[number].offer(np.flatnonzero(better), products, start)
        advance(end - start)
    found, similarities = (np.concatenate(arrays) for arrays in zip(*(one.sort() for one in best), strict=True))
    return found, similarities


def _products(queries: Vectors, block: Vectors, out: Similarities | None = None) -> Similarities:
    """All inner products. The parts do not depend on the number of threads, so results are bit-identical."""
    products = np.empty((len(queries), len(block)), dtype=np.float32) if out is None else out

    def multiply(start: int) -> None:
        np.matmul(queries[start : start + PART], block.T, out=products[start : start + PART])

    with _one_blas_thread() as threads:
        starts = range(0, len(queries), PART)
        if threads == 1 or len(starts) == 1:
            for start in starts:
                multiply(start)
        else:
            for _ in _pool(threads).map(multiply, starts):
                pass
    return products


_limited = threading.Lock()
_limits: list[Any] = []  # threads multiplying now: the first sets the limit, the last lifts it


@contextlib.contextmanager
def _one_blas_thread() -> Iterator[int]:
    """Limits BLAS to one thread, as splitting a product changes its last bits. Yields the previous number."""
    controller = _blas()
    with _limited:
        if not _limits:
            threads = max((library["num_threads"] for library in controller.info()), default=1)
            _limits.append((threads, controller.limit(limits=1)))
        else:
            _limits.append(_limits[0])
        threads = _limits[0][0]
    try:
        yield threads
    finally:
        with _limited:
            _, limit = _limits.pop()
            if not _limits:
                limit.restore_original_limits()


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "exact-search")


@functools.cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


class _Best:
    """Candidates per query, ordered by row. They are cut to the k best whenever they have doubled."""

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

    def sort(self) -> tuple[Rows, Similarities]:
        """Best first; equal ones stay in the order of their rows."""
        query, rows, scores, place = self._lay_out()
        wide = np.full((self.queries, int(place.max()) + 1), -np.inf, dtype=np.float32)
        wide[query, place] = scores
        numbers = np.zeros(wide.shape, dtype=np.int64)
        numbers[query, place] = rows
        order = np.argsort(-wide, axis=1, kind="stable")[:, : self.k]
        return np.take_along_axis(numbers, order, axis=1), np.take_along_axis(wide, order, axis=1)

    def _settle(self) -> None:
        query, rows, scores, place = self._lay_out()
        wide = np.full((self.queries, int(place.max()) + 1), -np.inf, dtype=np.float32)
        wide[query, place] = scores
        self.threshold = _kth(wide, self.k)
        kept = scores >= self.threshold[query, 0]
        self._candidates = [(query[kept], rows[kept], scores[kept])]
        self._count = int(np.count_nonzero(kept))

    def _lay_out(self) -> tuple[NDArray[np.int16], Rows, Similarities, Rows]:
        """All candidates by query, and each one's place among those of its query."""
        query, rows, scores = (np.concatenate(parts) for parts in zip(*self._candidates, strict=True))
        order = np.argsort(query, kind="stable")
        counts = np.bincount(query, minlength=self.queries)
        place = np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)
        return query[order], rows[order], scores[order], place


def _kth(scores: Similarities, k: int) -> Similarities:
    """The k-th best score of each row, as a column; -inf if there are fewer than k."""
    if scores.shape[1] < k:
        return np.full((len(scores), 1), -np.inf, dtype=np.float32)
    at = scores.shape[1] - k
    return np.partition(scores, at, axis=1)[:, at : at + 1]


def recall_of_rows(rows: Rows, query: Vectors, vectors: Vectors, nearest: Rows, scores: Similarities) -> float:
    """Recall of one query. `scores` are those of its true nearest rows, best first."""
    last = float(scores[-1]) if len(scores) else np.inf
    return recall(vectors[rows] @ query, last, len(nearest), np.isin(rows, nearest))


def recall(
    scores: NDArray[np.floating], last: float, wanted: int, listed: NDArray[np.bool_] | Literal[False] = False
) -> float:
    """Number of the `wanted` nearest that were returned. Ties with the last one count.

    Never below the count by id, as a recomputed score may differ in its last bits.
    """
    if not wanted:
        return 1.0
    return min(int(np.count_nonzero(np.logical_or(listed, scores >= last - TOLERANCE))), wanted) / wanted
