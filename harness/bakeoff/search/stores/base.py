"""The store interface: vectors in, ids with cosine similarities out. The harness orders them and breaks ties.

A store opens what its folder or server already holds. `add` replaces known ids. Build parameters shape the index and
are fixed; query parameters can be changed with `tune` at any time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError, StoreError, Unavailable
from bakeoff_providers.needs import Plugin
from bakeoff_providers.registry import nearest
from msgspec import Meta
from numpy.typing import NDArray

from bakeoff.core.clock import time_call
from bakeoff.core.facts import SOME, Fact, fact
from bakeoff.core.filters import Condition, Metadata, Scalar, Where, conditions, filterable, is_text
from bakeoff.core.progress import steps
from bakeoff.embedding.vector_rows import BLOCK, VectorRows
from bakeoff.search.hits import Hits
from bakeoff.search.variants import Precision

M = Annotated[int, "links per node of the graph; higher = better recall, more memory", Meta(ge=1, le=1024)]
EfConstruction = Annotated[int, "candidates considered while building; higher = better recall, slower build"]
Ef = Annotated[int, "candidates per search of the graph; higher = better recall, slower search"]
Lists = Annotated[int, "lists that the vectors are divided into"]
Probes = Annotated[int, "lists probed per search; higher = better recall, slower search"]
KFactor = Annotated[
    float, "candidates per wanted document that a refining index compares exactly", Meta(ge=1, le=10_000)
]
Url = Annotated[str, "server address; default: the environment variable, if set"]
Threads = Annotated[int, "threads that build and search", Meta(ge=1, le=1024)]
SearchKind = Annotated[Literal["vectors", "hybrid"], "hybrid keeps texts too; a contender's `search` sets it"]


LARGEST = 127


def int8_codes(vectors: Vectors) -> NDArray[np.int8]:
    """Scale each vector by its largest value. Cosine ignores length, so no scale is stored."""
    scale = LARGEST / np.abs(vectors).max(axis=-1, keepdims=True)
    return np.asarray(np.round(vectors * scale), dtype=np.int8)


def bit_codes(vectors: Vectors, order: Literal["big", "little"] = "big") -> NDArray[np.uint8]:
    """Sign bits, eight to a byte; padding is equal in all."""
    return np.packbits(vectors >= 0, axis=-1, bitorder=order)


def signs(codes: NDArray[np.uint8], dimensions: int) -> Vectors:
    """The unit vectors that bits represent."""
    bits = np.unpackbits(codes, axis=-1, count=dimensions)
    return np.where(bits, 1.0, -1.0).astype(np.float32) / np.float32(np.sqrt(dimensions))


def bit_similarity(hamming: Any, dimensions: int) -> Any:
    """Cosine of the signs, from their Hamming distance."""
    return 1 - 2 * hamming / dimensions


UNIT = 1e-5  # tolerance of a squared length before the vector is scaled

Grid = Mapping[str, Sequence[Any]]  # parameter → values to sweep, cheapest first
LINKS = (8, 16, 32)  # values of a graph's M to sweep
CANDIDATES = (16, 32, 64, 128, 256, 512)  # lengths of a graph's candidate list to sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What the engine does natively. The adapter emulates missing filters and updates, at a cost in time."""

    exact: bool  # nothing nearer can have been missed
    filters: bool  # filters are applied during the search
    persistent: bool  # survives closing and reopening
    updates: bool  # replaced and deleted vectors are really removed
    in_process: bool  # no server


class WrongCount(StoreError):
    """The store's count differs from the number of documents added."""

    def __init__(self, store: str, added: int, held: int) -> None:
        self.store, self.added, self.held = store, added, held
        super().__init__(f"{store} was given {added:,} rows and holds {held:,}")


@dataclass(frozen=True, slots=True)
class SizeModel:
    """Theoretical index size, without file format overhead."""

    per_document: float
    fixed: float
    formula: str

    def bytes(self, documents: int) -> float:
        """Size of the index over this many documents."""
        return self.fixed + self.per_document * documents


@dataclass(frozen=True, slots=True)
class Holding:
    """How a store holds vectors of a given precision: its options, the actual precision, and a note."""

    options: Mapping[str, Any]
    precision: Precision  # the engine's own type; float32 where it has no smaller one
    note: Fact | None = None


class Store(Plugin, ABC):
    """Vectors → nearest ids. Subclasses implement the underscore methods; inputs are checked here."""

    name: ClassVar[str]
    threads: ClassVar[int | None] = None  # the number of threads, where the adapter sets it
    reads_while_writing: ClassVar[bool] = False  # safe to search while another thread writes
    query_options: ClassVar[tuple[str, ...]] = ()  # options that `tune` takes; all others are build parameters
    named_by_value: ClassVar[tuple[str, ...]] = ()  # options shown by value alone in labels
    build_grid: ClassVar[Grid] = {}
    query_grid: ClassVar[Grid] = {}
    search_kinds: ClassVar[tuple[str, ...]] = ("vectors",)  # and "hybrid", where the engine has it
    failures: tuple[type[Exception], ...] = ()  # exceptions of a server's client

    def __init__(self, *, dimensions: int, folder: Path) -> None:
        self.dimensions, self.folder = dimensions, folder
        self.left_out: set[str] = set()  # metadata fields that `takes` refused

    @classmethod
    def takes(cls, field: str, value: Scalar) -> bool:
        """Whether the engine can store this metadata field. What it can't is left out, with a note."""
        return (field.isascii() or is_text(field)) and (not isinstance(value, str) or value.isascii() or is_text(value))

    @classmethod
    def check(cls, *, dimensions: int | None, documents: int, **options: Any) -> None:
        """Raise InputError for options that do not fit this many documents; builds nothing."""

    @classmethod
    def quantise(cls, precision: Precision, options: Mapping[str, Any]) -> Mapping[str, Any] | None:  # noqa: ARG003
        """Options for native vectors of this precision; None if the engine has no such type."""
        return None

    @classmethod
    def holding(cls, precision: Precision, options: Mapping[str, Any]) -> Holding:
        """How vectors of this precision are stored, with a note if the engine has no such type."""
        if precision == "float32":
            return Holding(options, precision)
        native = cls.quantise(precision, options)
        if native is None:
            return Holding(options, "float32", fact("no_such_precision", store=cls.label(options), precision=precision))
        if cls.keeps_originals(precision):
            return Holding(native, precision, fact("keeps_originals", store=cls.name, precision=precision))
        return Holding(native, precision)

    @classmethod
    def keeps_originals(cls, precision: Precision) -> bool:  # noqa: ARG003 - most keep the codes alone
        """Whether codes are stored in addition to the full vectors."""
        return False

    @classmethod
    def label(cls, options: Mapping[str, Any]) -> str:
        """The store with its options, for tables."""
        shown = (str(value) if name in cls.named_by_value else f"{name}={value}" for name, value in options.items())
        return " ".join([cls.name, *shown])

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """Capabilities under its current options."""

    def add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Add documents or replace known ones; they are searchable afterwards."""
        units, fields = self._check_rows(ids, vectors, metadata)
        if len(ids):
            with self._failures_as_unavailable():
                self._add(ids, units, fields)

    def _check_rows(
        self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Mapping[str, Any]] | None
    ) -> tuple[Vectors, Sequence[Metadata]]:
        """Validate rows for `_add`."""
        if vectors.ndim != 2 or len(vectors) != len(ids) or (metadata is not None and len(metadata) != len(ids)):
            raise InputError(f"{self.name}: {len(ids)} ids, but not as many vectors and metadata")
        if not len(ids):
            return vectors, []
        self._check_dimensions(vectors.shape[1])
        if len(set(ids)) < len(ids):
            raise InputError(f"{self.name}: there are duplicate ids in one call")
        fields = [self._keep_fields(document) for document in metadata] if metadata is not None else [{}] * len(ids)
        return _unit(np.ascontiguousarray(vectors, dtype=np.float32), ids), fields

    def note_left_out(self) -> Fact | None:
        """The note about metadata that was left out, if any."""
        if not self.left_out:
            return None
        return fact("refused_metadata", store=self.name, count=len(self.left_out), fields=sorted(self.left_out)[:SOME])

    def _keep_fields(self, metadata: Mapping[str, Any]) -> Metadata:
        fields = filterable(metadata)
        refused = [field for field, value in fields.items() if not self.takes(field, value)]
        self.left_out.update(refused)
        return {field: value for field, value in fields.items() if field not in refused} if refused else fields

    def delete(self, ids: Sequence[str]) -> None:
        """Delete documents; unknown ids are ignored."""
        if len(ids):
            with self._failures_as_unavailable():
                self._delete(list(ids))

    def search(self, vector: Vectors, k: int, where: Where | None = None) -> Hits:
        """The k nearest that pass the filter, or all if there are fewer.

        A filtered list is always full. An unfiltered list of an approximate index may be short, which counts
        as loss.
        """
        vector = self._check_query(vector)
        try:
            return self._search(vector, k, self._conditions(where) if where else ()).read(k)
        except self.failures as error:
            raise Unavailable(f"{self.name}: {error}") from error

    def _conditions(self, where: Where) -> tuple[Condition, ...]:
        """Refuses filters on fields that the store could not keep."""
        filters = conditions(where)
        for condition in filters:
            if not all(self.takes(condition.field, value) for value in condition.values):
                raise StoreError(
                    f"{self.name} can't keep metadata called {condition.field!r}, so it can't filter by it"
                )
        return filters

    def _check_query(self, vector: Vectors) -> Vectors:
        """Validate and normalise."""
        self._check_dimensions(vector.shape[-1])
        square = float(vector.dot(vector))
        if not 0 < square < np.inf:
            raise InputError(f"{self.name} was searched with a vector of zeros, NaN or infinity")
        if abs(square - 1) > UNIT:
            return np.asarray(vector / np.sqrt(square), dtype=np.float32)
        return vector

    def expect(self, documents: int, sample: Callable[[int], Vectors]) -> None:
        """Called before bulk adding with the total number and a way to draw a sample of all vectors."""

    def fill(self, ids: Sequence[str], vectors: VectorRows, fields: Sequence[Mapping[str, Any]] | None) -> int:
        """Add all documents blockwise; returns the nanoseconds spent in the store."""
        if len(vectors) > BLOCK:
            self.expect(len(vectors), lambda count: vectors[np.linspace(0, len(vectors) - 1, count).astype(np.int64)])
        nanoseconds = 0
        with steps(f"{self.name}: adding", len(vectors)) as advance:
            for start, block in vectors.blocks():
                part = slice(start, start + len(block))
                metadata = None if fields is None else fields[part]
                nanoseconds += time_call(partial(self.add, ids[part], block, metadata))[1]
                advance(len(block))
        return nanoseconds

    @abstractmethod
    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        """Distinct ids, unit vectors, metadata that can be filtered by."""

    @abstractmethod
    def _delete(self, ids: list[str]) -> None:
        """Delete ids, some of which may be unknown."""

    @abstractmethod
    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        """A unit vector and checked conditions."""

    @abstractmethod
    def count(self) -> int:
        """How many documents the engine holds, by its own count."""

    def check_count(self, added: int) -> None:
        """Refuses a store that holds more or fewer documents than it was given."""
        with self._failures_as_unavailable():
            held = self.count()
        if held != added:
            raise WrongCount(self.name, added, held)

    def build(self) -> None:
        """Build the index if that is a separate step. Search before it is exact or slower, never wrong."""

    @classmethod
    def grid(cls, documents: int, dimensions: int) -> Grid:  # noqa: ARG003 - most do not depend on them
        """Build parameters to sweep over this many documents."""
        return cls.build_grid

    def tunings(self) -> Grid:
        """Query parameters of this index, with values to sweep."""
        return self.query_grid

    def tune(self, **parameters: Any) -> None:
        """Change query parameters without a rebuild."""
        for parameter, value in parameters.items():
            if parameter not in self.query_options:
                raise InputError(
                    f"{self.name} has no query parameter {parameter!r}",
                    remedy=nearest(parameter, list(self.query_options)),
                )
            setattr(self, parameter, value)
        self._apply_tuning()

    def _apply_tuning(self) -> None:
        """Hands changed query parameters to the engine."""

    def persist(self) -> None:
        """Flush to disk."""

    def on_disk(self) -> bool:
        """Whether it writes to its folder, not to memory or a server."""
        return False

    def size_bytes(self) -> int | None:
        """Index size in bytes; None where unknown."""
        return sum(_bytes_on_disk(file) for file in self.folder.rglob("*") if file.is_file())

    @abstractmethod
    def size_model(self) -> SizeModel:
        """The theoretical size, with its formula in n documents and d dimensions."""

    def processes(self) -> list[int]:
        """Local server processes that hold the index."""
        return []

    def close(self) -> None:
        """Releases files and connections."""

    def discard(self) -> None:
        """Close, and remove what is stored outside its folder."""
        self.close()

    @contextmanager
    def _failures_as_unavailable(self) -> Iterator[None]:
        """A server failure fails the row, not the run."""
        try:
            yield
        except self.failures as error:
            raise Unavailable(f"{self.name}: {error}") from error

    def _check_dimensions(self, given: int) -> None:
        if given != self.dimensions:
            raise InputError(f"{self.name} holds vectors of {self.dimensions} dimensions, not of {given}")


def _bytes_on_disk(file: Path) -> int:
    """Allocated bytes: some stores write sparse files."""
    status = file.stat()
    return min(status.st_size, status.st_blocks * 512) if hasattr(status, "st_blocks") else status.st_size


def _unit(vectors: Vectors, ids: Sequence[str]) -> Vectors:
    """Normalise, so that inner product is cosine. Zeros and NaN are refused, as stores disagree on them."""
    squares = np.einsum("ij,ij->i", vectors, vectors)
    bad = ~((squares > 0) & (squares < np.inf))
    if bad.any():
        raise InputError(f"the vector of {ids[int(np.flatnonzero(bad)[0])]!r} is zero, NaN or infinite")
    if np.abs(squares - 1).max() > UNIT:
        return np.asarray(vectors / np.sqrt(squares)[:, None], dtype=np.float32)
    return vectors


def graph_bytes(dimensions: int, m: int, *, vector_bytes: float | None = None) -> SizeModel:
    """HNSW: the vector, 2M links of 4 bytes on the lowest level, and M more for one in M − 1 on each level above."""
    vector = 4 * dimensions if vector_bytes is None else vector_bytes
    upper = 4 * m / max(m - 1, 1)
    shown = "4d" if vector_bytes is None else f"{vector_bytes:g}"
    return SizeModel(vector + 8 * m + upper, 0, f"n · ({shown} + 8·{m} + 4·{m}/{max(m - 1, 1)})")


POOL = 100  # fewest candidates of each ranking to fuse
C = 60  # a place counts 1 / (C + place), as in our own fusion


class HybridStore(Store):
    """With `search = "hybrid"` it also stores texts, with English stemming like our BM25 by default.

    Both rankings are fused by RRF, so scores are only meaningful for ordering.
    """

    search_kinds = ("vectors", "hybrid")

    def add_texts(
        self,
        ids: Sequence[str],
        vectors: Vectors,
        texts: Sequence[str],
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Like `add`, with texts."""
        units, fields = self._check_rows(ids, vectors, metadata)
        if len(ids):
            with self._failures_as_unavailable():
                self._add_texts(ids, units, fields, texts)

    def search_hybrid(self, text: str, vector: Vectors, k: int, where: Where | None = None) -> Hits:
        """The k best that pass the filter. A text without known words leaves the vectors' order."""
        vector = self._check_query(vector)
        try:
            return self._search_hybrid(text, vector, k, self._conditions(where) if where else ()).read(k)
        except self.failures as error:
            raise Unavailable(f"{self.name}: {error}") from error

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        self._add_texts(ids, vectors, metadata, [""] * len(ids))

    @abstractmethod
    def _add_texts(
        self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata], texts: Sequence[str]
    ) -> None:
        """Like `_add`; texts are empty if the store was opened for vectors only."""

    @abstractmethod
    def _search_hybrid(self, text: str, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        """Any text, a unit vector, checked conditions."""
