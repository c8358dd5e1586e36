"""Finds ids in a very long list by sorted hashes: 12 bytes per id, no Python object."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
_Run = tuple[Numbers, NDArray[np.int32]]  # sorted hashes, and the row of each


class IdRows:
    """Id → rows of a growing list. New runs are merged with older ones of similar size."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._runs: list[_Run] = []
        self._known = 0

    def __len__(self) -> int:
        return len(self._names)

    def __reduce__(self) -> tuple[type[IdRows], tuple[Sequence[str]]]:
        return IdRows, (self._names,)  # hashes differ between processes

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self.of(name))

    def of(self, name: str) -> list[int]:
        """All rows of an id, in order."""
        return sorted(self.matches([name])[1].tolist())

    def among(self, names: Sequence[str]) -> set[str]:
        """The subset of `names` that is in the list."""
        return {names[place] for place in self.matches(names)[0].tolist()}

    def matches(self, names: Sequence[str]) -> tuple[Numbers, Numbers]:
        """All pairs of a place in `names` and a row of the list with the same id."""
        self._take_new()
        hashes, empty = _hashes(names), np.empty(0, dtype=np.int64)
        found = [_same_hash(run, hashes) for run in self._runs]
        places, rows = (np.concatenate([empty, *parts]) for parts in zip((empty, empty), *found, strict=True))
        pairs = zip(places.tolist(), rows.tolist(), strict=True)
        same = np.fromiter((names[place] == self._names[row] for place, row in pairs), dtype=bool, count=len(places))
        return places[same], rows[same]

    def has_repeats(self) -> bool:
        """Whether an id is in the list twice."""
        self._take_new()
        self._merge(everything=True)
        for hashes, rows in self._runs:
            for place in np.flatnonzero(hashes[1:] == hashes[:-1]).tolist():  # few different ids share a hash
                if len(self.of(self._names[rows[place]])) > 1:
                    return True
        return False

    def _take_new(self) -> None:
        if self._known < len(self._names):
            hashes = _hashes(self._names[self._known :] if self._known else self._names)
            order = np.argsort(hashes, kind="stable")
            self._runs.append((hashes[order], (order + self._known).astype(np.int32)))
            self._known = len(self._names)
            self._merge()

    def _merge(self, *, everything: bool = False) -> None:
        while len(self._runs) > 1 and (everything or len(self._runs[-2][0]) <= 2 * len(self._runs[-1][0])):
            older, newer = self._runs[-2:]
            hashes = np.concatenate((older[0], newer[0]))
            order = np.argsort(hashes, kind="stable")  # both runs are sorted, so this is one pass
            self._runs[-2:] = [(hashes[order], np.concatenate((older[1], newer[1]))[order])]


def _hashes(names: Sequence[str]) -> Numbers:
    return np.fromiter(map(hash, names), dtype=np.int64, count=len(names))


def _same_hash(run: _Run, hashes: Numbers) -> tuple[Numbers, Numbers]:
    """Pairs of a place among these hashes and a row of the run."""
    low, high = (np.searchsorted(run[0], hashes, side=side) for side in ("left", "right"))
    counts = high - low
    before = np.cumsum(counts) - counts
    at = np.repeat(low - before, counts) + np.arange(counts.sum())
    return np.repeat(np.arange(len(hashes)), counts), run[1][at].astype(np.int64)
