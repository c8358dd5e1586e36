"""What the libraries that hold bare vectors in this process have in common: ids, filters and files come from here."""

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
from bakeoff.search.stores.id_map import Catalogue, Labels

SCAN_BELOW = 10_000  # when so few pass a filter, comparing with each of them is faster and surer than any graph
Found = tuple[NDArray[np.integer], NDArray[np.float32]]


class Names(Sequence[str]):
    """Ids that are looked up when somebody reads them: the engine's answer is numbers, and only that is timed."""

    __slots__ = ("_catalogue", "_found", "_labels")

    def __init__(self, catalogue: Catalogue, labels: NDArray[np.integer]) -> None:
        self._catalogue, self._labels = catalogue, labels
        self._found: list[str] | None = None

    def __len__(self) -> int:
        return len(self._labels)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...

    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if self._found is None:
            self._found = self._catalogue.names(self._labels)
        return self._found[place]


class NumberedStore(Store):
    """An engine that knows vectors by number; the catalogue knows the rest."""

    def __init__(self, *, dimensions: int, folder: Path) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        there = self._catalogue_file.is_file()
        self._catalogue = Catalogue.load(self._catalogue_file) if there else Catalogue()

    @property
    def _catalogue_file(self) -> Path:
        return self.folder / "catalogue.msgpack"

    @property
    def _index_file(self) -> Path:
        return self.folder / "index"

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        labels, died = self._catalogue.put(ids, metadata)
        self._remove(died)
        self._insert(labels, vectors)

    def _delete(self, ids: list[str]) -> None:
        self._remove(self._catalogue.drop(ids))

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        if not len(self._catalogue):
            return Hits([], [])
        labels, scores = self._filtered(vector, k, filters) if filters else self._nearest(vector, k)
        return Hits(Names(self._catalogue, labels), scores.tolist())

    def _filtered(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Found:
        """Few are compared one by one; of many, enough are fetched that k should pass, and if they do not, again so."""
        mask = self._catalogue.mask(filters)
        passing = int(np.count_nonzero(mask))
        if passing > SCAN_BELOW:
            labels, scores = self._nearest(vector, 1 + int(1.5 * k * len(self._catalogue) / passing))
            keep = mask[labels]
            if np.count_nonzero(keep) >= k:
                return labels[keep][:k], scores[keep][:k]
        return self._scan(vector, k, np.flatnonzero(mask))

    def _scan(self, vector: Vectors, k: int, labels: Labels) -> Found:
        """The k nearest among these numbers, by comparing with each."""
        if not len(labels):
            return labels, np.empty(0, dtype=np.float32)
        scores = self._vectors(labels) @ vector
        order = np.argsort(-scores, kind="stable")[:k]
        return labels[order], scores[order]

    @abstractmethod
    def _insert(self, labels: Labels, vectors: Vectors) -> None:
        """Takes new numbers."""

    @abstractmethod
    def _remove(self, labels: Labels) -> None:
        """Forgets numbers; there may be none."""

    @abstractmethod
    def _nearest(self, vector: Vectors, k: int) -> Found:
        """At most k living numbers with their similarities, best first; k may exceed what there is."""

    @abstractmethod
    def _vectors(self, labels: Labels) -> Vectors:
        """The vectors of these numbers, as the index holds them."""

    def persist(self) -> None:
        """The catalogue, and the index beside it."""
        self._catalogue.save(self._catalogue_file)
        self._save(self._index_file)

    @abstractmethod
    def _save(self, file: Path) -> None:
        """Writes the index."""
