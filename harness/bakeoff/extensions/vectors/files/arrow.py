"""Vectors in Parquet files and Lance data sets, read as Arrow tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.files import draft_of, replacing, writing

from bakeoff.calls.key_index import Keys, keys_from, keys_of
from bakeoff.core.hashing import Identity
from bakeoff.core.progress import steps
from bakeoff.extensions.vectors.files import (
    ID,
    TEXT,
    TEXT_HASH,
    TOKENS,
    VECTOR,
    FileContents,
    PackedIds,
    VectorBlock,
    VectorFile,
    as_float32,
    hex_of,
    keys_from_hex,
)

IDENTITY = b"bakeoff.identity"


def schema(identity: Identity, dimensions: int) -> Any:
    """The schema of our own files. Its metadata holds the identity."""
    import pyarrow as pa

    columns = [
        (ID, pa.string()),
        (TEXT_HASH, pa.string()),
        (TOKENS, pa.float32()),
        (VECTOR, pa.list_(pa.float32(), dimensions)),
    ]
    return pa.schema(columns, metadata={IDENTITY: msgspec.json.encode(dict(identity))})


def tables(blocks: Iterable[VectorBlock], shape: Any) -> Iterator[Any]:
    """Blocks as record batches of this schema."""
    import pyarrow as pa

    for block in blocks:
        flat = pa.array(np.ascontiguousarray(block.vectors, dtype=np.float32).ravel())
        vectors = pa.FixedSizeListArray.from_arrays(flat, block.vectors.shape[1])
        tokens = pa.array(np.asarray(block.tokens, dtype=np.float32))
        yield pa.record_batch([pa.array(block.ids), pa.array(hex_of(block.keys)), tokens, vectors], schema=shape)


class ArrowFile(VectorFile):
    """A file of Arrow record batches. Subclasses define how to open it."""

    modules: ClassVar[tuple[str, ...]] = ("pyarrow",)

    def _schema(self) -> Any:
        raise NotImplementedError

    def _count(self) -> int:
        raise NotImplementedError

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        raise NotImplementedError

    def contents(self) -> FileContents:
        """Ids, and each row's hash or text if present."""
        try:
            return self._contents()
        except UnicodeDecodeError as error:
            raise self.wrong(f"is damaged ({error})") from None

    def _contents(self) -> FileContents:
        shape = self._schema()
        names = set(shape.names)
        for needed in (ID, VECTOR):
            if self.columns[needed] not in names:
                raise self.wrong(
                    f"has no column {self.columns[needed]!r}",
                    remedy=f"its columns: {', '.join(shape.names)}; name it with --column {needed}=…",
                )
        wanted = [self.columns[name] for name in (ID, TEXT, TEXT_HASH, TOKENS) if self.columns[name] in names]
        hashed, tokens_known = self._find_hash_column(wanted), self.columns[TOKENS] in wanted
        ids, keys, tokens = PackedIds(), bytearray(), bytearray()
        with steps(f"{self.path.name}: ids read", self._count()) as advance:
            for batch in self._batches(wanted):
                named = batch.column(self.columns[ID]).to_pylist()
                if None in named:
                    raise self.wrong("has no id", len(ids) + named.index(None))
                if hashed is not None:
                    keys += self._keys(batch, hashed, len(ids)).tobytes()
                if tokens_known:
                    column = batch.column(self.columns[TOKENS]).to_numpy(zero_copy_only=False)
                    tokens += np.nan_to_num(column.astype(np.float32)).tobytes()
                ids.extend(map(str, named))
                advance(len(named))
        stored = (shape.metadata or {}).get(IDENTITY)
        return FileContents(
            ids,
            self._dimensions(),
            keys_from(memoryview(keys)) if keys else None,
            np.frombuffer(tokens, dtype=np.float32) if tokens else None,
            self._identity(stored) if stored else None,
        )

    def _find_hash_column(self, wanted: list[str]) -> str | None:
        """The column that identifies a row's text: its hash, else the text itself."""
        return next((name for name in (TEXT_HASH, TEXT) if self.columns[name] in wanted), None)

    def _keys(self, batch: Any, hashed: str, first: int) -> Keys:
        values = batch.column(self.columns[hashed]).to_pylist()
        if hashed == TEXT_HASH:
            return keys_from_hex(self, values, first)
        if None in values:
            raise self.wrong("has no text", first + values.index(None))
        return keys_of(map(str, values))

    def _identity(self, stored: bytes) -> Identity:
        try:
            return msgspec.json.decode(stored, type=dict[str, str | int | float | bool | None])
        except msgspec.DecodeError as error:
            raise self.wrong(f"has a damaged identity in its metadata ({error})") from None

    def vectors(self) -> Iterator[Vectors]:
        """Lists of floats, all of one length."""
        first, width = 0, self._dimensions()
        for batch in self._batches([self.columns[VECTOR]]):
            column = batch.column(0)
            if column.null_count:
                raise self.wrong("has no vector", first + column.is_null().to_pylist().index(True))
            lengths = np.array([width] * len(column)) if _is_fixed(column.type) else column.value_lengths().to_numpy()
            if len(odd := np.flatnonzero(lengths != width)):
                row = int(odd[0])
                raise self.wrong(f"has {int(lengths[row])} numbers, the first row has {width}", first + row)
            flat = column.flatten()
            if flat.null_count:
                raise self.wrong("has a null in its vector", first + flat.is_null().to_pylist().index(True) // width)
            yield as_float32(self, flat.to_numpy(zero_copy_only=False).reshape(-1, width), first)
            first += len(column)

    def _dimensions(self) -> int:
        import pyarrow as pa

        kind = self._schema().field(self.columns[VECTOR]).type
        if not (_is_fixed(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            raise self.wrong(f"column {self.columns[VECTOR]!r} holds {kind}, not lists of numbers")
        if not pa.types.is_floating(kind.value_type):
            raise self.wrong(f"column {self.columns[VECTOR]!r} holds {kind.value_type}, not floats")
        if _is_fixed(kind):
            return int(kind.list_size)
        for batch in self._batches([self.columns[VECTOR]]):
            if len(batch):
                return len(batch.column(0)[0].as_py() or ())
        return 0


def _is_fixed(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_fixed_size_list(kind))


_ROWS = 8_192  # in memory at once


class Lance(ArrowFile):
    """Columns id, text_hash, tokens and vector. Others are ignored."""

    name = "lance"
    extra = "lancedb"
    modules = ("lancedb", "pyarrow")

    def _open(self) -> Any:
        import lancedb

        if not self.path.is_dir():
            raise self.wrong("no such folder", remedy="check the path")
        try:
            return lancedb.connect(str(self.path.absolute().parent)).open_table(self.path.stem)
        except Exception as error:  # lancedb has no base class of its own
            raise self.wrong(f"is not readable as Lance ({_first_line(error)})") from None

    def _schema(self) -> Any:
        table = self._open()
        try:
            return table.schema
        except Exception as error:
            raise self.wrong(f"is damaged ({_first_line(error)})") from None

    def _count(self) -> int:
        table = self._open()
        try:
            return int(table.count_rows())
        except Exception as error:
            raise self.wrong(f"is damaged ({_first_line(error)})") from None

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        table = self._open()
        try:
            yield from table.search().select(columns).to_batches(batch_size=_ROWS)
        except Exception as error:
            raise self.wrong(f"is damaged ({_first_line(error)})") from None

    def write(self, identity: Identity, dimensions: int, blocks: Iterable[VectorBlock], rows: int) -> None:  # noqa: ARG002
        """Write under a temporary name, then replace an existing folder."""
        import lancedb
        import pyarrow as pa

        shape = schema(identity, dimensions)
        target = self.path.absolute()
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
        with writing(target), draft_of(target, Path.mkdir) as draft:
            try:
                reader = pa.RecordBatchReader.from_batches(shape, tables(blocks, shape))
                lancedb.connect(str(draft)).create_table(self.path.stem, reader, schema=shape)
                if target.exists():
                    target.rename(draft / "before")
                (draft / f"{self.path.stem}.lance").rename(target)
            finally:
                shutil.rmtree(draft, ignore_errors=True)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


_ROWS, _BYTES = 8_192, 1 << 20  # in memory at once; by default pyarrow reads the whole file


class Parquet(ArrowFile):
    """Columns id, text_hash, tokens and vector. Others are ignored."""

    name = "parquet"
    extra = "parquet"

    def _open(self) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.ParquetFile(self.path, pre_buffer=False, buffer_size=_BYTES)
        except FileNotFoundError:
            raise self.wrong("no such file", remedy="check the path") from None
        except (pa.ArrowException, OSError) as error:
            raise self.wrong(f"is not readable as Parquet ({error})") from None

    def _schema(self) -> Any:
        return self._open().schema_arrow

    def _count(self) -> int:
        return int(self._open().metadata.num_rows)

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        import pyarrow as pa

        try:
            yield from self._open().iter_batches(batch_size=_ROWS, columns=columns)
        except (pa.ArrowException, OSError) as error:
            raise self.wrong(f"is damaged ({error})") from None

    def write(self, identity: Identity, dimensions: int, blocks: Iterable[VectorBlock], rows: int) -> None:  # noqa: ARG002
        """Write without compression, since vectors do not compress."""
        import pyarrow.parquet as pq

        shape = schema(identity, dimensions)
        with replacing(self.path) as part, pq.ParquetWriter(part, shape, compression="none") as writer:
            for table in tables(blocks, shape):
                writer.write_batch(table)
