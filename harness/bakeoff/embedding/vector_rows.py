"""A corpus in vectors that stay on disk: read in blocks, brought to unit length, changed by a variant on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt
from bakeoff_providers.base import InFiles, Role, Vectors

from bakeoff.calls.key_index import Places
from bakeoff.core.progress import Advance
from bakeoff.embedding.shards import ShardRows
from bakeoff.embedding.space import Space

BLOCK = 16_384  # rows that are in memory at once
KEPT_BYTES = 64 << 20  # a corpus of fewer bytes is read once and kept

Change = Callable[[Vectors], Vectors]


class RowSource(Protocol):
    """Where rows are: a space of the cache, or a provider's own files."""

    def take(self, places: Places) -> Vectors:
        """The vectors at these places, as they came from the provider."""


@dataclass(frozen=True, slots=True)
class FileRows:
    """The files of a provider that has all vectors already; they are read where they are."""

    provider: InFiles

    @property
    def dimensions(self) -> int:
        """How long its rows are."""
        return int(self.provider.rows(np.zeros(1, dtype=np.int64), Role.DOCUMENT).shape[1])

    def take(self, places: Places) -> Vectors:
        """Checked on the way, as every provider's answers are."""
        return self.provider.rows(places, Role.DOCUMENT)


@dataclass(slots=True)
class VectorRows:
    """Unit vectors, one row per chunk of the corpus; rows are read when they are asked for."""

    space: RowSource
    places: Places
    changes: tuple[Change, ...]
    dimensions: int
    _kept: Vectors | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.places)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and dimensions, as of an array."""
        return len(self.places), self.dimensions

    def transform(self, change: Change, dimensions: int) -> VectorRows:
        """The same rows, each block put through one more step. It must treat every row by itself."""
        return replace(self, changes=(*self.changes, change), dimensions=dimensions, _kept=None)

    def select(self, rows: npt.NDArray[Any]) -> VectorRows:
        """Some of the rows: by number, or by a mask."""
        return replace(self, places=self.places[rows], _kept=None)

    def part(self, start: int, stop: int) -> VectorRows:
        """Consecutive rows."""
        return replace(self, places=self.places[start:stop], _kept=None)

    def portable(self) -> VectorRows | None:
        """The same rows for another process that sees the same files; None where they are not in shards."""
        rows = self.space.rows() if isinstance(self.space, Space) else self.space
        return replace(self, space=rows, _kept=None) if isinstance(rows, ShardRows) else None

    def blocks(self) -> Iterator[tuple[int, Vectors]]:
        """All rows in their order: the number of the first, and the block."""
        for start in range(0, len(self), BLOCK):
            yield start, self[start : start + BLOCK]

    @overload
    def __getitem__(self, rows: int | np.integer[Any]) -> Vectors: ...

    @overload
    def __getitem__(self, rows: slice | list[int] | npt.NDArray[Any]) -> Vectors: ...

    def __getitem__(self, rows: int | np.integer[Any] | slice | list[int] | npt.NDArray[Any]) -> Vectors:
        if self._kept is None and len(self) * self.dimensions * 4 <= KEPT_BYTES:
            self._kept = self._read(self.places)
        if self._kept is not None:
            return np.asarray(self._kept[rows])
        if isinstance(rows, int | np.integer):
            return np.asarray(self._read(self.places[int(rows)][None])[0])
        return self._read(self.places[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self[:], dtype=dtype)

    def _read(self, places: Places) -> Vectors:
        vectors = self.space.take(places)
        for change in self.changes:
            vectors = change(vectors)
        return vectors


def rows_in_files(
    provider: InFiles, blocks: Iterable[Sequence[str]], total: int, change: Change, advance: Advance
) -> VectorRows:
    """Vectors that are in files already: where each is, and no copy of any."""
    places, start = np.empty(total, dtype=np.int64), 0
    for block in blocks:
        places[start : start + len(block)] = provider.rows_of(block, Role.DOCUMENT)
        start += len(block)
        advance(len(block))
    source = FileRows(provider)
    return VectorRows(source, places, (change,), source.dimensions)


def select_rows(vectors: Vectors | VectorRows, rows: npt.NDArray[Any]) -> Vectors | VectorRows:
    """Some of the rows; those on disk stay there."""
    return vectors.select(rows) if isinstance(vectors, VectorRows) else np.asarray(vectors[rows])
