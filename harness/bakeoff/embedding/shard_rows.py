"""Rows of several shards, read by place: all that a process needs that only searches."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from bakeoff_providers.base import Vectors

from bakeoff.calls.key_index import Places
from bakeoff.embedding.shards import Shard

ROW_BITS = 40  # a place is the shard's number above, the row below
_CACHE_LINE = 64  # bytes
_SCATTERED = 8  # runs of consecutive rows that are shorter on average are picked through the map


@dataclass(frozen=True, slots=True)
class ShardRows:
    """Shards in the order that places count them in."""

    shards: Sequence[Shard]
    dimensions: int

    def take(self, places: Places) -> Vectors:
        """The vectors at these places, as they came from the provider."""
        vectors = _aligned(len(places), self.dimensions)
        breaks = np.flatnonzero(places[1:] - places[:-1] != 1) + 1
        if len(places) < _SCATTERED * (len(breaks) + 1):
            self._pick(places, vectors)
            return vectors
        for start, stop in itertools.pairwise([0, *breaks.tolist(), len(places)]):
            shard, row = divmod(int(places[start]), 1 << ROW_BITS)
            self.shards[shard].read(row, vectors[start:stop])
        return vectors

    def _pick(self, places: Places, vectors: Vectors) -> None:
        """One by one, shard by shard, in the order of rows: each page of a file is touched once."""
        order = np.argsort(places, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(places[order] >> ROW_BITS)) + 1):
            if len(group):
                shard = self.shards[int(places[group[0]]) >> ROW_BITS]
                vectors[group] = shard.rows(places[group] & ((1 << ROW_BITS) - 1))


def _aligned(rows: int, dimensions: int) -> Vectors:
    """Room for vectors from the start of a cache line on: a file's pages are copied there a third quicker."""
    room = np.empty(rows * dimensions + _CACHE_LINE // 4, dtype=np.float32)
    start = -room.ctypes.data % _CACHE_LINE // 4
    return room[start : start + rows * dimensions].reshape(rows, dimensions)
