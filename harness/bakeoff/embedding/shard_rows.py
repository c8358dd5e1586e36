"""Rows of several shards, read by place: all that a process needs that only searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from bakeoff_providers.base import Vectors

from bakeoff.embedding.key_index import Places
from bakeoff.embedding.shards import Shard

ROW_BITS = 40  # a place is the shard's number above, the row below
_SCATTERED = 8  # runs of consecutive rows that are shorter on average are picked through the map


@dataclass(frozen=True, slots=True)
class ShardRows:
    """Shards in the order that places count them in."""

    shards: Sequence[Shard]
    dimensions: int

    def take(self, places: Places) -> Vectors:
        """The vectors at these places, as they came from the provider."""
        vectors = np.empty((len(places), self.dimensions), dtype=np.float32)
        order = np.argsort(places, kind="stable") if np.any(np.diff(places) < 0) else np.arange(len(places))
        ordered = places[order]
        for group in _parts(order, np.flatnonzero(np.diff(ordered >> ROW_BITS)) + 1):
            shard, rows = self.shards[places[group[0]] >> ROW_BITS], places[group] & ((1 << ROW_BITS) - 1)
            breaks = np.flatnonzero((np.diff(rows) != 1) | (np.diff(group) != 1)) + 1
            if len(rows) < _SCATTERED * (len(breaks) + 1):
                vectors[group] = shard.rows(rows)
                continue
            for part in _parts(np.arange(len(rows)), breaks):
                first, last = part[0], part[-1]
                shard.read(int(rows[first]), vectors[group[first] : group[last] + 1])
        return vectors


def _parts(numbers: npt.NDArray[np.intp], breaks: npt.NDArray[np.intp]) -> list[npt.NDArray[np.intp]]:
    """Cut before each break; nothing where there is nothing."""
    return [part for part in np.split(numbers, breaks) if len(part)]
