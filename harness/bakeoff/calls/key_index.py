"""Finds the vectors of millions of texts by sorted arrays of keys, without a Python object per text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.hashing import text_key

Keys = NDArray[np.uint64]  # two numbers per text: the 16 bytes of its key
Places = NDArray[np.int64]


def keys_of(texts: Iterable[str]) -> Keys:
    """The keys of these texts."""
    return keys_from(b"".join(map(text_key, texts)))


def keys_from(raw: bytes | memoryview) -> Keys:
    """Keys from their stored form, 16 bytes each."""
    return np.frombuffer(raw, dtype="<u8").reshape(-1, 2)


class _Run(NamedTuple):
    """Keys sorted by their first half, with their places."""

    keys: Keys
    places: Places


class KeyIndex:
    """Key → place. New runs are merged with older ones of similar size."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._new: list[_Run] = []

    def add(self, keys: Keys, places: Places) -> None:
        """Adds keys. They are sorted at the next lookup."""
        if len(keys):
            self._new.append(_Run(keys, places))

    def find(self, keys: Keys) -> Places:
        """The place of each key; −1 if missing."""
        self._settle()
        places = np.full(len(keys), -1, dtype=np.int64)
        for run in self._runs:
            open_ = np.flatnonzero(places < 0)
            if not len(open_):
                break
            places[open_] = _find(run, keys[open_])
        return places

    def all(self) -> tuple[Keys, Places]:
        """Every key once, ordered by place."""
        runs = [*self._runs, *self._new]
        if not runs:
            return np.empty((0, 2), dtype=np.uint64), np.empty(0, dtype=np.int64)
        keys, places = _join(runs)
        if _may_repeat(keys):
            order = np.lexsort((places, keys[:, 1], keys[:, 0]))
            keys, places = keys[order], places[order]
            first = np.concatenate(([True], (np.diff(keys, axis=0) != 0).any(axis=1)))
            keys, places = keys[first], places[first]
        if np.any(places[1:] < places[:-1]):
            order = np.argsort(places, kind="stable")
            keys, places = keys.take(order, axis=0), places[order]
        return keys, places

    def __len__(self) -> int:
        return len(self.all()[0])

    def _settle(self) -> None:
        if self._new:
            self._runs.append(_sort(self._new))
            self._new = []
        while len(self._runs) > 1 and len(self._runs[-2].keys) <= 2 * len(self._runs[-1].keys):
            self._runs[-2:] = [_sort(self._runs[-2:])]


def _join(runs: list[_Run]) -> _Run:
    return _Run(np.concatenate([run.keys for run in runs]), np.concatenate([run.places for run in runs]))


def _sort(runs: list[_Run]) -> _Run:
    keys, places = _join(runs)
    order = np.argsort(np.ascontiguousarray(keys[:, 0]), kind="stable")
    return _Run(keys.take(order, axis=0), places[order])


def _may_repeat(keys: Keys) -> bool:
    """False if all keys are distinct. Sorting 32 bits takes half the time, and chance collisions are few."""
    bits = keys.view("<u4")[:, 0]
    ordered = np.sort(bits)
    shared = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(shared) > len(keys) // 100:
        return True
    marked = np.zeros(1 << 16, dtype=np.bool_)
    marked[shared >> 16] = True
    close = keys[marked[bits >> 16]]
    return len(np.unique(close, axis=0)) < len(close)


def _find(run: _Run, keys: Keys) -> Places:
    """Binary search by the first half, then a full comparison. Equal first halves are checked one by one."""
    at = np.searchsorted(run.keys[:, 0], keys[:, 0])
    inside = np.minimum(at, len(run.keys) - 1)
    places = np.where((run.keys[inside] == keys).all(axis=1), run.places[inside], -1)
    half = (places < 0) & (run.keys[inside, 0] == keys[:, 0])
    for number in np.flatnonzero(half):
        end = int(np.searchsorted(run.keys[:, 0], keys[number, 0], side="right"))
        same = np.flatnonzero(run.keys[at[number] : end, 1] == keys[number, 1])
        if len(same):
            places[number] = run.places[at[number] + same[0]]
    return places
