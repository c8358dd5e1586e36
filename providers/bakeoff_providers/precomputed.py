"""Vectors made elsewhere, from .npy, .npz or parquet, looked up by id instead of text."""

from __future__ import annotations

import hashlib
import json
import mmap
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bakeoff_providers.arrays import map_array
from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role, Vectors, check_batch
from bakeoff_providers.cards import FREE, override_card
from bakeoff_providers.errors import BakeoffError, EmbeddingFailed, InputError, Unavailable
from bakeoff_providers.shared_options import (
    Dimensions,
    Label,
    Price,
)

BESIDE = (".ids.txt", ".ids.json", ".ids.npy")
NAMED = 20  # missing ids that an error lists
_ROWS, _BYTES = 8_192, 1 << 20  # of a parquet file per read; by default, pyarrow holds the whole file


class Precomputed(Provider):
    """Your own vectors, from .npy, .npz or parquet files, by id.

    One file for both roles (`path`), or one for each (`documents`, `queries`). The ids of a .npy are in another file.

    That file is named by `ids` (`document_ids`, `query_ids`) or is next to it: `x.npy` and `x.ids.txt`. Without one,
    row numbers from 0 are the ids.
    """

    name: ClassVar[str] = "precomputed"
    default_model: ClassVar[str] = "precomputed"
    local: ClassVar[bool] = True
    by_id: ClassVar[bool] = True
    paths: ClassVar[tuple[str, ...]] = ("path", "ids", "documents", "document_ids", "queries", "query_ids")

    def __init__(
        self,
        *,
        path: Annotated[str | None, "one file with the vectors of documents and queries"] = None,
        ids: Annotated[str | None, "file with the ids for `path`; default: next to it"] = None,
        documents: Annotated[str | None, "file with the vectors of the documents"] = None,
        document_ids: Annotated[str | None, "file with the ids for `documents`"] = None,
        queries: Annotated[str | None, "file with the vectors of the queries"] = None,
        query_ids: Annotated[str | None, "file with the ids for `queries`"] = None,
        id_column: Annotated[str, "column of the ids in a parquet file"] = "id",
        vector_column: Annotated[str, "column of the vectors in a parquet file"] = "vector",
        model: Label = None,
        dimensions: Dimensions = None,
        price: Price = None,
    ) -> None:
        if (path is None) == (documents is None or queries is None) or (path and (documents or queries)):
            raise InputError("precomputed needs either path, or documents and queries", remedy='path = "vectors.npz"')
        self._columns = (id_column, vector_column)
        self._files = {
            Role.DOCUMENT: _files(path or documents or "", ids if path else document_ids),
            Role.QUERY: _files(path or queries or "", ids if path else query_ids),
        }
        card = ModelCard(name=model or Path(path or documents or "").stem, batch_items=4096, price=FREE)
        self.card = override_card(card, dimensions=dimensions, price=price)
        self._tables: dict[tuple[Path, ...], tuple[dict[str, int], Vectors]] = {}
        self._prints: dict[tuple[Path, ...], str] = {}
        self._lock = Lock()

    def identity(self, role: Role) -> dict[str, str | int | float | bool | None]:
        """The content of the files, not their names, since a path's content may change."""
        files = self._files[role]
        with self._lock:
            if files not in self._prints:
                self._prints[files] = _fingerprint(files)
        return {**super().identity(role), "files": self._prints[files], "columns": "/".join(self._columns)}

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        """The vectors of these ids (`by_id`: the harness passes ids, not texts)."""
        return EmbeddingBatch(self.rows(self.rows_of(texts, role), role))

    def rows_of(self, ids: Sequence[str], role: Role) -> NDArray[np.int64]:
        """The row number of each id."""
        rows = self._table(role)[0]
        try:
            return np.array([rows[name] for name in ids], dtype=np.int64)
        except KeyError:
            unknown = [name for name in ids if name not in rows]
        named = ", ".join(map(repr, unknown[:NAMED])) + f" and {len(unknown) - NAMED} more" * (len(unknown) > NAMED)
        vectors, *id_files = self._files[role]
        hint = "" if id_files or vectors.suffix != ".npy" else f" (row numbers are its ids: {_ids_hint(vectors)})"
        raise EmbeddingFailed(f"{self.card.name}: no vector for {role.value} {named} in {vectors.name}{hint}")

    def ids(self, role: Role) -> list[str]:
        """All ids with a vector, in row order."""
        return list(self._table(role)[0])

    def rows(self, numbers: NDArray[np.int64], role: Role) -> Vectors:
        """Copies consecutive rows at once. Unusable rows are reported by id."""
        names, vectors = self._table(role)
        first = int(numbers[0]) if len(numbers) else 0
        consecutive = np.array_equal(numbers, np.arange(first, first + len(numbers)))
        chosen = np.array(vectors[first : first + len(numbers)] if consecutive else vectors[numbers], dtype=np.float32)
        if isinstance(vectors, np.memmap):
            _let_go(vectors)
        squares = np.einsum("ij,ij->i", chosen, chosen)
        if not ((squares > 0) & (squares < np.inf)).all() or self.card.dimensions not in (None, chosen.shape[1]):
            name_of = {row: name for name, row in names.items()}
            check_batch(EmbeddingBatch(chosen), [name_of[number] for number in numbers.tolist()], self.card)
        return chosen

    def ready(self) -> None:
        """Reads the files, so that errors appear before anything is embedded."""
        sizes = {role: self._table(role)[1].shape[1] for role in Role}
        if len(set(sizes.values())) > 1:
            documents, queries = sizes[Role.DOCUMENT], sizes[Role.QUERY]
            raise InputError(f"documents have {documents} dimensions, queries {queries}", place=self.card.name)

    def close(self) -> None:
        """Releases the vectors."""
        self._tables.clear()

    def _table(self, role: Role) -> tuple[dict[str, int], Vectors]:
        files = self._files[role]
        with self._lock:
            if files not in self._tables:
                self._tables[files] = _read(files, *self._columns)
            return self._tables[files]


def _let_go(mapped: Any) -> None:
    """Releases the pages of a mapped file, which count as this process's memory once read."""
    if hasattr(mmap, "MADV_DONTNEED") and isinstance(mapped._mmap, mmap.mmap):
        mapped._mmap.madvise(mmap.MADV_DONTNEED)


def _files(path: str, ids: str | None) -> tuple[Path, ...]:
    """The file of the vectors, and for a .npy the file of their ids if there is one."""
    vectors = Path(path).expanduser()
    if vectors.suffix not in (".npy", ".npz", ".parquet"):
        raise InputError("vectors come from .npy, .npz or .parquet", file=vectors)
    if not vectors.is_file():
        raise InputError("no such file", file=vectors)
    if vectors.suffix != ".npy":
        if ids is not None:
            raise InputError(f"a {vectors.suffix} file brings its own ids", file=vectors, remedy="leave ids out")
        return (vectors,)
    if ids is None:
        beside = [vectors.with_suffix(suffix) for suffix in BESIDE]
        return (vectors, *[file for file in beside if file.is_file()][:1])
    if not Path(ids).expanduser().is_file():
        raise InputError("no such file", file=Path(ids).expanduser(), remedy=_ids_hint(vectors))
    return (vectors, Path(ids).expanduser())


def _ids_hint(vectors: Path) -> str:
    return f"write one id a line, in the order of the rows, to {vectors.with_suffix(BESIDE[0]).name}"


def _read(files: tuple[Path, ...], id_column: str, vector_column: str) -> tuple[dict[str, int], Vectors]:
    file = files[0]
    try:
        if file.suffix == ".npy":
            vectors = map_array(file)
            ids = _ids(files[1]) if files[1:] else list(range(len(vectors)))
        elif file.suffix == ".npz":
            with np.load(file, allow_pickle=False) as arrays:
                ids, vectors = arrays["ids"].tolist(), arrays["vectors"]
        else:
            ids, vectors = _parquet(file, id_column, vector_column)
    except BakeoffError:
        raise
    except Exception as error:  # a damaged array, archive or table may raise anything
        expected = {".npz": "arrays `ids` (text or numbers, no objects) and `vectors`"}.get(file.suffix, "a whole file")
        raise InputError(f"unreadable: {error}", file=file, remedy=f"expected {expected}") from None
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        raise InputError(f"vectors of shape {vectors.shape} and type {vectors.dtype}, not rows of numbers", file=file)
    if len(ids) != len(vectors):
        raise InputError(f"{len(ids)} ids for {len(vectors)} vectors", file=file)
    rows = {_text(name): row for row, name in enumerate(ids)}
    if len(rows) != len(ids):
        twice = Counter(map(_text, ids)).most_common(1)[0][0]
        raise InputError(f"id {twice!r} appears twice", file=file)
    return rows, vectors


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def _ids(file: Path) -> list[Any]:
    if file.suffix == ".npy":
        return list(map_array(file).tolist())
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".json":
        names = json.loads(text)
        if not isinstance(names, list):
            raise ValueError(f"{file.name} is not a list of ids")
        return names
    return [line for line in text.split("\n") if line]


def _parquet(file: Path, id_column: str, vector_column: str) -> tuple[list[Any], Any]:
    """Block by block into one array, without a second copy."""
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise Unavailable("precomputed: install bakeoff[parquet] to read parquet") from None
    with parquet.ParquetFile(file, pre_buffer=False, buffer_size=_BYTES) as table:
        names = table.schema_arrow.names
        for column in (id_column, vector_column):
            if column not in names:
                remedy = f"name it with id_column or vector_column: {', '.join(names)}"
                raise InputError(f"no column {column!r}", file=file, remedy=remedy)
        ids: list[Any] = []
        vectors = np.zeros((0, 0), dtype=np.float32)
        for batch in table.iter_batches(_ROWS, columns=[id_column, vector_column]):
            part = _matrix(batch.column(vector_column))
            if not ids:
                vectors = np.empty((table.metadata.num_rows, part.shape[1]), dtype=np.float32)
            if part.shape[1] != vectors.shape[1]:
                raise ValueError("vectors are of unequal length")
            if part.dtype.kind not in "fiu":
                raise InputError(f"vectors of type {part.dtype}, not rows of numbers", file=file)
            with np.errstate(over="ignore"):  # values that become infinite are refused by id
                vectors[len(ids) : len(ids) + len(part)] = part
            ids += batch.column(id_column).to_pylist()
    return ids, vectors


def _matrix(column: Any) -> Any:
    """A matrix from a column of lists, without a Python object per number."""
    values = column.flatten().to_numpy(zero_copy_only=False)
    if column.null_count or len(values) % len(column):
        raise ValueError("vectors are missing or of unequal length")
    width = len(values) // len(column)
    if not (column.value_lengths().to_numpy(zero_copy_only=False) == width).all():
        raise ValueError("vectors are of unequal length")
    return values.reshape(len(column), width)


def _fingerprint(files: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:32]
