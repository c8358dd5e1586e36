"""FAISS sharded over several indexes, for corpora that do not fit into one machine's memory."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
import xxhash
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError

from bakeoff.core.filters import Condition, Metadata
from bakeoff.core.progress import steps
from bakeoff.core.ranking import make_ranking
from bakeoff.embedding.vector_rows import VectorRows
from bakeoff.search.hits import Hits
from bakeoff.search.stores.base import Capabilities, Ef, EfConstruction, Grid, KFactor, Probes, SizeModel, Store
from bakeoff.search.stores.faiss import Faiss

Waiting = Callable[[], Any]  # a pending call; calling it waits for the result

Fields = Sequence[Mapping[str, Any]] | None


class IndexShard(ABC):
    """One shard, local or remote. Calls are started first and awaited later, so that shards work in parallel."""

    @abstractmethod
    def fill(self, ids: Sequence[str], vectors: VectorRows, fields: Fields) -> Waiting:
        """Build the index of these documents."""

    @abstractmethod
    def ask(self, method: str, *arguments: Any, **options: Any) -> Waiting:
        """Start a call of an index method."""

    @abstractmethod
    def close(self) -> None:
        """Release the index."""


class LocalShard(IndexShard):
    """An index in this process."""

    def __init__(self, store: Faiss) -> None:
        self.store = store

    def fill(self, ids: Sequence[str], vectors: VectorRows, fields: Fields) -> Waiting:
        """Run immediately."""
        nanoseconds = self.store.fill(ids, vectors, fields)
        return lambda: nanoseconds

    def ask(self, method: str, *arguments: Any, **options: Any) -> Waiting:
        """Run immediately."""
        answer = getattr(self.store, method)(*arguments, **options)
        return lambda: answer

    def close(self) -> None:
        """Close without deleting files."""
        self.store.close()


class FaissShards(Store):
    """`shards` FAISS indexes whose hits are merged by Bakeoff's ranking rule. Their number is part of the row.

    Bulk loads are split in order; single documents are assigned by a hash of their id.
    """

    name = "faiss_shards"
    modules = ("faiss",)
    distributions = ("faiss-cpu",)
    threads = 1
    query_options = Faiss.query_options
    named_by_value = ("index",)
    build_grid: ClassVar[Grid] = {"shards": (2, 4, 8)}  # of a flat index: others are swept by `faiss`

    def __init__(
        self,
        *,
        dimensions: int,
        folder: Path,
        shards: Annotated[int, "number of indexes that share the documents", msgspec.Meta(ge=1, le=1024)] = 2,
        index: Annotated[str, "index_factory string of each index"] = "Flat",
        ef_construction: EfConstruction = 200,
        ef: Ef = 64,
        nprobe: Probes = 16,
        k_factor: KFactor = 5,
    ) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        if shards < 1:
            raise InputError(f"shards is {shards}", place=self.name, remedy="give 1 or more")
        self.options = {"index": index, "ef_construction": ef_construction}
        self.index, self.ef, self.nprobe, self.k_factor = index, ef, nprobe, k_factor
        first = self._local_shard(0)
        self._first = first.store
        self.shards: list[IndexShard] = [first, *(self._local_shard(number) for number in range(1, shards))]

    def _local_shard(self, number: int) -> LocalShard:
        folder = self.folder / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        return LocalShard(Faiss(dimensions=self.dimensions, folder=folder, **self.build_options()))

    def build_options(self) -> dict[str, Any]:
        """The options of each index."""
        return {**self.options, **{name: getattr(self, name) for name in self.query_options}}

    @classmethod
    def check(cls, *, dimensions: int | None, documents: int, shards: int = 2, **options: Any) -> None:
        """Split the documents over the indexes."""
        Faiss.check(dimensions=dimensions, documents=documents // max(shards, 1), **options)

    @property
    def capabilities(self) -> Capabilities:
        """As for a single index."""
        return self._first.capabilities

    def tunings(self) -> Grid:
        """As for a single index."""
        return self._first.tunings()

    def fill(self, ids: Sequence[str], vectors: VectorRows, fields: Fields) -> int:
        """Give each shard consecutive documents. Shards in other processes are filled in parallel."""
        start, count = time.perf_counter_ns(), len(self.shards)
        bounds = [len(ids) * number // count for number in range(count + 1)]
        waiting = []
        for shard, first, last in zip(self.shards, bounds, bounds[1:], strict=False):
            if last > first:
                rows = vectors.part(first, last)
                wait = shard.fill(ids[first:last], rows, None if fields is None else fields[first:last])
                waiting.append((wait, last - first))
        spent = []
        with steps(f"{self.name}: indexed", len(ids)) as advance:
            for wait, documents in waiting:
                spent.append(wait())
                advance(documents)
        return time.perf_counter_ns() - start if None in spent else sum(spent)

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        homes = [xxhash.xxh3_64_intdigest(name.encode()) % len(self.shards) for name in ids]
        for number, shard in enumerate(self.shards):
            rows = [row for row, home in enumerate(homes) if home == number]
            strangers = [name for name, home in zip(ids, homes, strict=True) if home != number]
            if strangers:
                shard.ask("delete", strangers)()
            if rows:
                shard.ask("add", [ids[row] for row in rows], vectors[rows], [metadata[row] for row in rows])()

    def _delete(self, ids: list[str]) -> None:
        for wait in [shard.ask("delete", ids) for shard in self.shards]:
            wait()

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        waiting = [shard.ask("nearest", vector, k, filters) for shard in self.shards]
        answers = [wait() for wait in waiting]
        best = make_ranking(((item, score) for hits in answers for item, score in zip(*hits, strict=True)), k)
        return Hits(best.ids, best.scores)

    def _apply_tuning(self) -> None:
        for shard in self.shards:
            shard.ask("tune", **{name: getattr(self, name) for name in self.query_options})()

    def count(self) -> int:
        """All indexes together."""
        return sum(wait() for wait in [shard.ask("count") for shard in self.shards])

    def persist(self) -> None:
        """Write every index to its folder."""
        for wait in [shard.ask("persist") for shard in self.shards]:
            wait()

    def size_bytes(self) -> int:
        """All indexes together."""
        return sum(wait() for wait in [shard.ask("size_bytes") for shard in self.shards])

    def size_model(self) -> SizeModel:
        """One index's model, with the fixed part once per shard."""
        one = self._first.size_model()
        return SizeModel(one.per_document, one.fixed * len(self.shards), one.formula)

    def close(self) -> None:
        """Close all indexes."""
        for shard in self.shards:
            shard.close()
