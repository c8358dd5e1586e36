"""Ids, metadata, filters and persistence for in-process engines that know vectors by number."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from bakeoff_providers.base import Vectors
from numpy.typing import NDArray

from bakeoff.core.files import read_bytes, write_atomic
from bakeoff.core.filters import Condition, Metadata, tokens
from bakeoff.core.id_rows import IdRows
from bakeoff.core.lazy_sequence import LazySequence
from bakeoff.search.hits import Hits
from bakeoff.search.stores.base import Store

Labels = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Saved(msgspec.Struct, array_like=True):
    """The file's layout."""

    ids: list[str]
    alive: bytes
    metadata: list[list[str]]


_NO_TOKENS: list[str] = []  # of every document without metadata


class IdMap:
    """Maps ids to numbers that are never reused. A replaced document gets a new one."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._rows = IdRows(self._ids)
        self._living = 0
        self._tokens: list[list[str]] = []
        self._room = np.zeros(0, dtype=bool)  # liveness of each number, with spare capacity
        self._postings: dict[str, list[int]] = {}
        self._packed: dict[str, Labels] = {}

    def __len__(self) -> int:
        return self._living

    @property
    def numbers(self) -> int:
        """Numbers ever assigned, deleted documents included."""
        return len(self._ids)

    @property
    def dead(self) -> bool:
        """Whether any number is dead."""
        return self._living < len(self._ids)

    @property
    def _alive(self) -> Mask:
        return self._room[: len(self._ids)]

    def put(self, ids: Sequence[str], metadata: Sequence[Metadata]) -> tuple[Labels, Labels]:
        """Assign numbers; returns them and those they replace."""
        replaced = self.drop(ids)
        first = len(self._ids)
        self._append(ids, [tokens(document) if document else _NO_TOKENS for document in metadata])
        self._alive[first:] = True
        self._living += len(ids)
        return np.arange(first, len(self._ids), dtype=np.int64), replaced

    def drop(self, ids: Sequence[str]) -> Labels:
        """Delete documents and return their numbers; unknown ids are ignored."""
        dropped = np.unique(self._rows.matches(ids)[1])
        dropped = dropped[self._alive[dropped]]
        self._alive[dropped] = False
        self._living -= len(dropped)
        return dropped

    def clear(self) -> None:
        """Delete all documents."""
        self._alive[:] = False
        self._living = 0

    def ids_of(self, labels: NDArray[np.integer]) -> list[str]:
        """The ids of these numbers."""
        return [self._ids[label] for label in labels.tolist()]

    def mask(self, filters: Sequence[Condition]) -> Mask:
        """The live numbers whose metadata passes."""
        kept = self._alive.copy()
        for condition in filters:
            allowed = np.zeros(len(kept), dtype=bool)
            for token in condition.tokens():
                allowed[self._posting(token)] = True
            kept &= allowed
        return kept

    def save(self, path: Path) -> None:
        """Write the id map atomically."""
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
        if len(self._ids) > len(self._room):  # doubling keeps copies few
            room = np.zeros(max(len(self._ids), 2 * len(self._room)), dtype=bool)
            room[: len(self._room)] = self._room
            self._room = room

    def _posting(self, token: str) -> Labels:
        if token not in self._packed:
            self._packed[token] = np.array(self._postings.get(token, []), dtype=np.int64)
        return self._packed[token]


SCAN_BELOW = 10_000  # with so few candidates, a scan beats any graph
Neighbours = tuple[NDArray[np.integer], NDArray[np.float32]]


class LazyIds(LazySequence[str]):
    """Ids looked up on reading, so that only the engine's search is timed."""

    __slots__ = ("_id_map", "_ids", "_labels")

    def __init__(self, id_map: IdMap, labels: NDArray[np.integer]) -> None:
        self._id_map, self._labels = id_map, labels
        self._ids: list[str] | None = None

    def __len__(self) -> int:
        return len(self._labels)

    def _between(self, start: int, stop: int) -> Iterator[str]:
        if self._ids is None:
            self._ids = self._id_map.ids_of(self._labels)
        return iter(self._ids[start:stop])


class NumberedStore(Store):
    """A store over an engine that identifies vectors by number."""

    def __init__(self, *, dimensions: int, folder: Path) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        self._ids = IdMap.load(self._ids_file) if self._ids_file.is_file() else IdMap()

    @property
    def _ids_file(self) -> Path:
        return self.folder / "ids.msgpack"

    @property
    def _index_file(self) -> Path:
        return self.folder / "index"

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        labels, replaced = self._ids.put(ids, metadata)
        self._remove(replaced)
        self._insert(labels, vectors)

    def _delete(self, ids: list[str]) -> None:
        self._remove(self._ids.drop(ids))

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        if not len(self._ids):
            return Hits([], [])
        labels, scores = self._search_filtered(vector, k, filters) if filters else self._nearest(vector, k)
        return Hits(LazyIds(self._ids, labels), scores.tolist())

    def nearest(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> tuple[list[str], list[float]]:
        """Search results as plain lists, for other processes."""
        hits = self._search(vector, k, filters)
        return list(hits.ids), list(hits.scores)

    def _search_filtered(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Neighbours:
        """Scan few candidates; of many, fetch enough that k should pass, else scan all."""
        mask = self._ids.mask(filters)
        passing = int(np.count_nonzero(mask))
        if passing > SCAN_BELOW:
            labels, scores = self._nearest(vector, 1 + int(1.5 * k * len(self._ids) / passing))
            keep = mask[labels]
            if np.count_nonzero(keep) >= k:
                return labels[keep][:k], scores[keep][:k]
        return self._scan(vector, k, np.flatnonzero(mask))

    def _scan(self, vector: Vectors, k: int, labels: Labels) -> Neighbours:
        """The k nearest of these numbers, by exact comparison."""
        if not len(labels):
            return labels, np.empty(0, dtype=np.float32)
        scores = self._vectors(labels) @ vector
        order = np.argsort(-scores, kind="stable")[:k]
        return labels[order], scores[order]

    @abstractmethod
    def _insert(self, labels: Labels, vectors: Vectors) -> None:
        """Insert vectors under new numbers."""

    @abstractmethod
    def _remove(self, labels: Labels) -> None:
        """Remove numbers, possibly none."""

    @abstractmethod
    def _nearest(self, vector: Vectors, k: int) -> Neighbours:
        """At most k live numbers with similarities, best first."""

    @abstractmethod
    def _vectors(self, labels: Labels) -> Vectors:
        """The vectors of these numbers, as the index holds them."""

    def persist(self) -> None:
        """Write the id map and the index."""
        self._ids.save(self._ids_file)
        self._save(self._index_file)

    @abstractmethod
    def _save(self, file: Path) -> None:
        """Writes the index."""
