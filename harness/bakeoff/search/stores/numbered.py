"""For libraries in this process that hold bare vectors by number: ids, filters and files come from here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import overload

import numpy as np
from bakeoff_providers.base import Vectors
from numpy.typing import NDArray

from bakeoff.core.filters import Condition, Metadata
from bakeoff.search.hits import Hits
from bakeoff.search.stores.base import Store
from bakeoff.search.stores.id_map import IdMap, Labels

SCAN_BELOW = 10_000  # when so few pass a filter, comparing with each of them is faster and surer than any graph
Neighbours = tuple[NDArray[np.integer], NDArray[np.float32]]


class LazyIds(Sequence[str]):
    """Ids that are looked up when they are read: the engine's answer is numbers, and only that is timed."""

    __slots__ = ("_id_map", "_ids", "_labels")

    def __init__(self, id_map: IdMap, labels: NDArray[np.integer]) -> None:
        self._id_map, self._labels = id_map, labels
        self._ids: list[str] | None = None

    def __len__(self) -> int:
        return len(self._labels)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...

    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if self._ids is None:
            self._ids = self._id_map.ids_of(self._labels)
        return self._ids[place]


class NumberedStore(Store):
    """An engine that knows vectors by number; the id map knows the rest."""

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
        labels, scores = self._filtered(vector, k, filters) if filters else self._nearest(vector, k)
        return Hits(LazyIds(self._ids, labels), scores.tolist())

    def nearest(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> tuple[list[str], list[float]]:
        """The answer to a search as plain lists, which can be sent to another process."""
        hits = self._search(vector, k, filters)
        return list(hits.ids), list(hits.scores)

    def _filtered(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Neighbours:
        """Few are compared one by one; of many, enough are fetched that k should pass, and all compared if not."""
        mask = self._ids.mask(filters)
        passing = int(np.count_nonzero(mask))
        if passing > SCAN_BELOW:
            labels, scores = self._nearest(vector, 1 + int(1.5 * k * len(self._ids) / passing))
            keep = mask[labels]
            if np.count_nonzero(keep) >= k:
                return labels[keep][:k], scores[keep][:k]
        return self._scan(vector, k, np.flatnonzero(mask))

    def _scan(self, vector: Vectors, k: int, labels: Labels) -> Neighbours:
        """The k nearest among these numbers, by comparing with each."""
        if not len(labels):
            return labels, np.empty(0, dtype=np.float32)
        scores = self._vectors(labels) @ vector
        order = np.argsort(-scores, kind="stable")[:k]
        return labels[order], scores[order]

    @abstractmethod
    def _insert(self, labels: Labels, vectors: Vectors) -> None:
        """Takes vectors under numbers that it does not hold yet."""

    @abstractmethod
    def _remove(self, labels: Labels) -> None:
        """Forgets numbers; there may be none."""

    @abstractmethod
    def _nearest(self, vector: Vectors, k: int) -> Neighbours:
        """At most k living numbers with their similarities, best first; k may exceed what there is."""

    @abstractmethod
    def _vectors(self, labels: Labels) -> Vectors:
        """The vectors of these numbers, as the index holds them."""

    def persist(self) -> None:
        """The id map, and the index beside it."""
        self._ids.save(self._ids_file)
        self._save(self._index_file)

    @abstractmethod
    def _save(self, file: Path) -> None:
        """Writes the index."""
