"""hnswlib in this process: the HNSW authors' own implementation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.shared_options import SEED

from bakeoff.search.stores.base import (
    CANDIDATES,
    LINKS,
    Capabilities,
    Ef,
    EfConstruction,
    Grid,
    M,
    SizeModel,
    graph_bytes,
)
from bakeoff.search.stores.numbered import Labels, Neighbours, NumberedStore


class Hnswlib(NumberedStore):
    """Inner product over unit vectors. Its filter is a slow Python callback per node, so Bakeoff over-fetches."""

    name = "hnswlib"
    extra = "hnswlib"
    modules = ("hnswlib",)
    distributions = ("hnswlib",)
    query_options = ("ef",)
    build_grid: ClassVar[Grid] = {"m": LINKS}
    query_grid: ClassVar[Grid] = {"ef": CANDIDATES}
    # The next vector added reuses a deleted vector's slot.
    capabilities = Capabilities(exact=False, filters=False, persistent=True, updates=True, in_process=True)

    def __init__(
        self,
        *,
        dimensions: int,
        folder: Path,
        m: M = 16,
        ef_construction: EfConstruction = 200,
        seed: Annotated[int, "seed of the graph's levels", SEED] = 42,
        ef: Ef = 64,
    ) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        import hnswlib

        self.m, self.ef = m, ef
        self._index = hnswlib.Index(space="ip", dim=dimensions)
        if self._index_file.is_file():
            self._index.load_index(str(self._index_file), allow_replace_deleted=True)
        else:
            self._index.init_index(
                max_elements=1024, M=m, ef_construction=ef_construction, random_seed=seed, allow_replace_deleted=True
            )
        self._apply_tuning()

    def _apply_tuning(self) -> None:
        """`ef` is not saved with the index."""
        self._index.set_ef(self.ef)

    def _insert(self, labels: Labels, vectors: Vectors) -> None:
        """Grow the index, whose capacity is fixed, by doubling."""
        needed = self._index.get_current_count() + len(labels)
        if needed > self._index.get_max_elements():
            self._index.resize_index(max(needed, 2 * self._index.get_max_elements()))
        self._index.add_items(vectors, labels, num_threads=1, replace_deleted=True)

    def _remove(self, labels: Labels) -> None:
        for label in labels.tolist():
            self._index.mark_deleted(label)

    def count(self) -> int:
        """Count without deleted labels, which its own list includes."""
        return int(np.isin(self._index.get_ids_list(), np.flatnonzero(self._ids.mask(()))).sum())

    def _nearest(self, vector: Vectors, k: int) -> Neighbours:
        """Fall back to a full scan if the graph reaches fewer than k."""
        k = min(k, len(self._ids))
        try:
            labels, distances = self._index.knn_query(vector, k, num_threads=1)
        except RuntimeError:
            return self._scan(vector, k, np.flatnonzero(self._ids.mask(())))
        return labels[0].astype(np.int64), 1 - distances[0]

    def _vectors(self, labels: Labels) -> Vectors:
        return np.asarray(self._index.get_items(labels), dtype=np.float32)

    def _save(self, file: Path) -> None:
        self._index.save_index(str(file))

    def size_bytes(self) -> int:
        """The size of the index file, without spare capacity."""
        return int(self._index.index_file_size())

    def size_model(self) -> SizeModel:
        """The graph and its vectors."""
        return graph_bytes(self.dimensions, self.m)
