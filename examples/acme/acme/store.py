"""Vectors in memory, compared one by one."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bakeoff.plugins import Capabilities, Condition, Hits, Metadata, SizeModel, Store, Vectors, passes


class Flat(Store):
    """Exact search in NumPy."""

    name = "acme_flat"
    capabilities = Capabilities(exact=True, filters=True, persistent=False, updates=True, in_process=True)

    def __init__(self, *, dimensions: int, folder: Path) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        self._documents: dict[str, tuple[Vectors, Metadata]] = {}

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        self._documents.update(zip(ids, zip(vectors, metadata, strict=True), strict=True))

    def _delete(self, ids: list[str]) -> None:
        for item in ids:
            self._documents.pop(item, None)

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        ids = [item for item, (_, metadata) in self._documents.items() if passes(metadata, filters)]
        if not ids:
            return Hits([], [])
        scores = np.array([self._documents[item][0] for item in ids]) @ vector
        best = np.argsort(-scores)[:k]
        return Hits([ids[place] for place in best], scores[best].tolist())

    def count(self) -> int:
        """As many as there are."""
        return len(self._documents)

    def size_bytes(self) -> int:
        """The vectors."""
        return 4 * self.dimensions * len(self._documents)

    def size_model(self) -> SizeModel:
        """Four bytes a number."""
        return SizeModel(4 * self.dimensions, 0, "n · 4d")
