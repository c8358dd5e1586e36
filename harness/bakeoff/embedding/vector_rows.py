"""A corpus's vectors on disk: read in blocks, normalised, and transformed by a variant on the way."""

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

BLOCK = 16_384  # rows in memory at once
KEPT_BYTES = 64 << 20  # smaller corpora are read once and kept

Change = Callable[[Vectors], Vectors]


class RowSource(Protocol):
    """A source of rows: a space of the cache, or a provider's own files."""

    def take(self, places: Places) -> Vectors:
        """The vectors at these places, as the provider returned them."""


@dataclass(frozen=True, slots=True)
class FileRows:
    """Files of a provider that already has all vectors, read in place."""

    provider: InFiles

    @property
    def dimensions(self) -> int:
        """The length of its rows."""
        return int(self.provider.rows(np.zeros(1, dtype=np.int64), Role.DOCUMENT).shape[1])

    def take(self, places: Places) -> Vectors:
        """Checked like every provider's answers."""
        return self.provider.rows(places, Role.DOCUMENT)


@dataclass(slots=True)
class VectorRows:
    """Unit vectors, one row per chunk of the corpus, read on demand."""

    space: RowSource
    places: Places
    changes: tuple[Change, ...]
    dimensions: int
    _kept: Vectors | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.places)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and dimensions, like an array's."""
        return len(self.places), self.dimensions

    def transform(self, change: Change, dimensions: int) -> VectorRows:
        """The same rows with one more transformation per block. It must treat every row independently."""
        return replace(self, changes=(*self.changes, change), dimensions=dimensions, _kept=None)

    def select(self, rows: npt.NDArray[Any]) -> VectorRows:
        """A subset of rows, by number or mask."""
        return replace(self, places=self.places[rows], _kept=None)

    def part(self, start: int, stop: int) -> VectorRows:
        """Consecutive rows."""
        return replace(self, places=self.places[start:stop], _kept=None)

    def portable(self) -> VectorRows | None:
        """The same rows for another process that sees the same files; None if they are not in shards."""
        rows = self.space.rows() if isinstance(self.space, Space) else self.space
        return replace(self, space=rows, _kept=None) if isinstance(rows, ShardRows) else None

    def blocks(self) -> Iterator[tuple[int, Vectors]]:
        """All rows in order: the number of the first, and the block."""
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
    """Vectors that are already in files: their places, without a copy."""
    places, start = np.empty(total, dtype=np.int64), 0
    for block in blocks:
        places[start : start + len(block)] = provider.rows_of(block, Role.DOCUMENT)
        start += len(block)
        advance(len(block))
    source = FileRows(provider)
    return VectorRows(source, places, (change,), source.dimensions)


def select_rows(vectors: Vectors | VectorRows, rows: npt.NDArray[Any]) -> Vectors | VectorRows:
    """A subset of rows. Rows on disk stay there."""
    return vectors.select(rows) if isinstance(vectors, VectorRows) else np.asarray(vectors[rows])
