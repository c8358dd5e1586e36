"""Vectors for store benchmarks: from a line-up's task, from files, or drawn in clusters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from bakeoff_providers.arrays import read_vectors
from bakeoff_providers.base import Role, Vectors
from bakeoff_providers.errors import InputError, Unavailable

from bakeoff.core.facts import Fact, fact
from bakeoff.embedding.unit import unit
from bakeoff.search.brute_force import Rows
from bakeoff.search.hits import Hits

if TYPE_CHECKING:
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.running.runner import Settings

FORMAT = 2  # of the JSON files of this extension
SMALL = 1000  # results over fewer documents do not generalise
SPREAD = 0.5
HELD_OUT = 1000


@dataclass(frozen=True, slots=True)
class VectorSample:
    """Document and query vectors of unit length."""

    name: str
    documents: Vectors
    queries: Vectors

    @property
    def ids(self) -> list[str]:
        """Row numbers as strings."""
        return [str(row) for row in range(len(self.documents))]

    @property
    def dimensions(self) -> int:
        """The dimension of every vector."""
        return int(self.documents.shape[1])

    def first(self, documents: int) -> VectorSample:
        """The same queries over the first documents."""
        return VectorSample(self.name, self.documents[:documents], self.queries)

    def save(self, folder: Path) -> None:
        """Write the arrays for other processes."""
        np.save(folder / "documents.npy", self.documents)
        np.save(folder / "queries.npy", self.queries)

    @classmethod
    def load(cls, folder: Path) -> VectorSample:
        """Memory-map what `save` wrote, so that processes share the memory."""
        arrays = (np.load(folder / f"{part}.npy", mmap_mode="r") for part in ("documents", "queries"))
        return cls("", *arrays)

    def warnings(self) -> list[Fact]:
        """Why results from these vectors may mislead."""
        return [fact("storelab.few_documents", documents=len(self.documents))] if len(self.documents) < SMALL else []


def rows_of(hits: Hits) -> Rows:
    """The hits' ids as row numbers."""
    return np.array([int(item) for item in hits.ids], dtype=np.int64)


def synthetic(documents: int, dimensions: int, queries: int = HELD_OUT, seed: int = 42) -> VectorSample:
    """Unit vectors around √n centres. Isotropic vectors would have no structure for an index to use."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(2, round(documents**0.5)), dimensions), dtype=np.float32)
    name = f"{documents} × {dimensions} clustered, seed {seed}"
    return VectorSample(name, draw_clustered(documents, centres, rng), draw_clustered(queries, centres, rng))


def draw_clustered(rows: int, centres: Vectors, rng: np.random.Generator) -> Vectors:
    """Draw unit vectors near random centres, block by block to save memory."""
    vectors = np.empty((rows, centres.shape[1]), dtype=np.float32)
    for start in range(0, rows, 65_536):
        block = vectors[start : start + 65_536]
        rng.standard_normal(block.shape, dtype=np.float32, out=block)
        block *= SPREAD
        block += centres[rng.integers(len(centres), size=len(block))]
        block /= np.linalg.norm(block, axis=1, keepdims=True)
    return vectors


def from_files(vectors: Path, queries: Path | None) -> VectorSample:
    """Read .npy files. Without a query file, hold out the last documents as queries."""
    documents = unit(read_vectors(vectors), vectors.name)
    if queries is not None:
        asked = unit(read_vectors(queries), queries.name)
        if asked.shape[1] != documents.shape[1]:
            raise InputError(f"has {asked.shape[1]} dimensions, the documents {documents.shape[1]}", file=queries)
        return VectorSample(vectors.name, documents, asked)
    held = min(HELD_OUT, len(documents) // 10)
    if not held:
        raise InputError("has too few rows to hold out queries", file=vectors, remedy="give --queries")
    return VectorSample(vectors.name, documents[:-held], documents[-held:])


def from_lineup(lineup: Lineup, settings: Settings) -> VectorSample:
    """The first dense contender's vectors, embedded through the cache as in a run."""
    from bakeoff.running.embeddings import Embeddings
    from bakeoff.search.variants import Variant
    from bakeoff.systems.dense import Dense
    from bakeoff.systems.embedding import EmbeddingRow
    from bakeoff.tasks.kinds import load_kind

    dense = (row for row in lineup.contenders if isinstance(row, EmbeddingRow) and not row.per_token)
    contender = next(dense, None)
    if contender is None:
        raise InputError("no contender has vectors", remedy="name a provider, or use --synthetic")
    task = load_kind(lineup.task, lineup.folder, lineup.overrides).task()
    embeddings = Embeddings(task, 1, settings, lineup.folder)
    try:
        embedder, rows_on_disk = embeddings.of(contender)
        vectors = rows_on_disk[:]
        items = [query.item for query in task.queries if query.item]
        if items:
            index = embeddings.index(contender)
            queries = vectors[[index.rows_of(item)[-1] for item in items]]
        else:
            asked = [query.id if embedder.provider.by_id else query.text for query in task.queries]
            queries = embedder.embed(asked, Role.QUERY)
    except Unavailable as error:
        raise Unavailable(f"{contender.label}: {error}") from None
    finally:
        embeddings.close()
    variant = (contender.variant if isinstance(contender, Dense) else Variant()).fit(vectors)
    name = f"{task.name} by {contender.model or contender.provider}"
    return VectorSample(name, variant.documents(vectors), variant.queries(queries))
