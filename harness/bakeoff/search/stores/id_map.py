"""Ids, metadata and filters for engines that know vectors by number only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from bakeoff.core.files import read_bytes, write_atomic
from bakeoff.core.filters import Condition, Metadata, tokens

Labels = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Saved(msgspec.Struct, array_like=True):
    """The catalogue on disk."""

    ids: list[str]
    alive: bytes
    metadata: list[list[str]]


class Catalogue:
    """Numbers that are never given twice: a replaced document gets a new one, and its old one is dead."""

    def __init__(self) -> None:
        self.labels: dict[str, int] = {}
        self._ids: list[str] = []
        self._tokens: list[list[str]] = []
        self._alive = np.zeros(0, dtype=bool)
        self._names: NDArray[np.object_] = np.empty(0, dtype=object)
        self._postings: dict[str, list[int]] = {}
        self._packed: dict[str, Labels] = {}

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def numbers(self) -> int:
        """How many numbers were given, to the living and the dead."""
        return len(self._ids)

    @property
    def dead(self) -> bool:
        """Whether there is a number whose document is gone."""
        return len(self.labels) < len(self._ids)

    def put(self, ids: Sequence[str], metadata: Sequence[Metadata]) -> tuple[Labels, Labels]:
        """New numbers for these documents, and the numbers that died of it."""
        died = self.drop(ids)
        first = len(self._ids)
        self._append(list(ids), [tokens(each) for each in metadata])
        self._alive = np.concatenate((self._alive, np.ones(len(ids), dtype=bool)))
        self.labels.update(zip(ids, range(first, len(self._ids)), strict=True))
        return np.arange(first, len(self._ids), dtype=np.int64), died

    def drop(self, ids: Sequence[str]) -> Labels:
        """The numbers of those that were here; they are dead now."""
        died = np.array([self.labels.pop(item) for item in ids if item in self.labels], dtype=np.int64)
        self._alive[died] = False
        return died

    def names(self, labels: NDArray[np.integer]) -> list[str]:
        """The ids of these numbers."""
        found: list[str] = self._names[labels].tolist()
        return found

    def mask(self, filters: Sequence[Condition]) -> Mask:
        """Which numbers are alive and pass."""
        kept = self._alive.copy()
        for condition in filters:
            allowed = np.zeros(len(kept), dtype=bool)
            for each in condition.tokens():
                allowed[self._posting(each)] = True
            kept &= allowed
        return kept

    def save(self, path: Path) -> None:
        """Writes the catalogue, whole or not at all."""
        write_atomic(path, msgspec.msgpack.encode(Saved(self._ids, np.packbits(self._alive).tobytes(), self._tokens)))

    @classmethod
    def load(cls, path: Path) -> Catalogue:
        """Reads what `save` wrote."""
        saved = msgspec.msgpack.decode(read_bytes(path), type=Saved)
        made = cls()
        made._append(saved.ids, saved.metadata)
        bits = np.unpackbits(np.frombuffer(saved.alive, dtype=np.uint8), count=len(saved.ids))
        made._alive = bits.astype(bool)
        made.labels = {saved.ids[label]: int(label) for label in np.flatnonzero(made._alive)}
        return made

    def _append(self, ids: list[str], metadata: list[list[str]]) -> None:
        for label, found in enumerate(metadata, start=len(self._ids)):
            for each in found:
                self._postings.setdefault(each, []).append(label)
        if any(metadata):
            self._packed.clear()
        self._ids += ids
        self._tokens += metadata
        new = np.empty(len(ids), dtype=object)
        new[:] = ids
        self._names = np.concatenate((self._names, new))

    def _posting(self, each: str) -> Labels:
        if each not in self._packed:
            self._packed[each] = np.array(self._postings.get(each, []), dtype=np.int64)
        return self._packed[each]
