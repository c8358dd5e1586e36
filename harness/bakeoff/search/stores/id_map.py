"""Ids, metadata and filters for engines that know vectors by number only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from bakeoff.core.files import read_bytes, write_atomic
from bakeoff.core.filters import Condition, Metadata, tokens
from bakeoff.core.id_rows import IdRows

Labels = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Saved(msgspec.Struct, array_like=True):
    """The file's layout."""

    ids: list[str]
    alive: bytes
    metadata: list[list[str]]


_NO_TOKENS: list[str] = []  # of every document without metadata


class IdMap:
    """Numbers that are never reused: a replaced document gets a new one, and its old one is dead."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._rows = IdRows(self._ids)
        self._living = 0
        self._tokens: list[list[str]] = []
        self._room = np.zeros(0, dtype=bool)  # whether each number is alive, and room for more
        self._postings: dict[str, list[int]] = {}
        self._packed: dict[str, Labels] = {}

    def __len__(self) -> int:
        return self._living

    @property
    def numbers(self) -> int:
        """How many numbers were ever given, also to documents that are gone."""
        return len(self._ids)

    @property
    def dead(self) -> bool:
        """Whether there is a number whose document is gone."""
        return self._living < len(self._ids)

    @property
    def _alive(self) -> Mask:
        return self._room[: len(self._ids)]

    def put(self, ids: Sequence[str], metadata: Sequence[Metadata]) -> tuple[Labels, Labels]:
        """New numbers for these documents, and the old numbers of those that are replaced."""
        replaced = self.drop(ids)
        first = len(self._ids)
        self._append(ids, [tokens(document) if document else _NO_TOKENS for document in metadata])
        self._alive[first:] = True
        self._living += len(ids)
        return np.arange(first, len(self._ids), dtype=np.int64), replaced

    def drop(self, ids: Sequence[str]) -> Labels:
        """Marks documents as gone and returns their numbers; unknown ids have none."""
        dropped = np.unique(self._rows.matches(ids)[1])
        dropped = dropped[self._alive[dropped]]
        self._alive[dropped] = False
        self._living -= len(dropped)
        return dropped

    def clear(self) -> None:
        """Marks all documents as gone."""
        self._alive[:] = False
        self._living = 0

    def ids_of(self, labels: NDArray[np.integer]) -> list[str]:
        """The ids of these numbers."""
        return [self._ids[label] for label in labels.tolist()]

    def mask(self, filters: Sequence[Condition]) -> Mask:
        """Which numbers belong to a document that is here and passes."""
        kept = self._alive.copy()
        for condition in filters:
            allowed = np.zeros(len(kept), dtype=bool)
            for token in condition.tokens():
                allowed[self._posting(token)] = True
            kept &= allowed
        return kept

    def save(self, path: Path) -> None:
        """Writes the id map, whole or not at all."""
        write_atomic(path, msgspec.msgpack.encode(Saved(self._ids, np.packbits(self._alive).tobytes(), self._tokens)))

    @classmethod
    def load(cls, path: Path) -> IdMap:
        """Reads what `save` wrote."""
        saved = msgspec.msgpack.decode(read_bytes(path), type=Saved)
        id_map = cls()
        id_map._append(saved.ids, [document or _NO_TOKENS for document in saved.metadata])
        bits = np.unpackbits(np.frombuffer(saved.alive, dtype=np.uint8), count=len(saved.ids))
        id_map._alive[:] = bits.astype(bool)
        id_map._living = int(np.count_nonzero(bits))
        return id_map

    def _append(self, ids: Sequence[str], metadata: list[list[str]]) -> None:
        if any(metadata):
            self._packed.clear()
            for label, document in enumerate(metadata, start=len(self._ids)):
                for token in document:
                    self._postings.setdefault(token, []).append(label)
        self._ids += ids
        self._tokens += metadata
        if len(self._ids) > len(self._room):  # twice as much: what is there is copied a few times only
            room = np.zeros(max(len(self._ids), 2 * len(self._room)), dtype=bool)
            room[: len(self._room)] = self._room
            self._room = room

    def _posting(self, token: str) -> Labels:
        if token not in self._packed:
            self._packed[token] = np.array(self._postings.get(token, []), dtype=np.int64)
        return self._packed[token]
