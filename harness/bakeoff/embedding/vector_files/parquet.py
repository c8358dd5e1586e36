"""Vectors in a Parquet file, read and written in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bakeoff_providers.files import replacing

from bakeoff.core.hashing import Identity
from bakeoff.embedding.vector_files.arrow import ArrowFile, schema, tables
from bakeoff.embedding.vector_files.base import Block

_ROWS, _BYTES = 8_192, 1 << 20  # in memory at once; left to itself, pyarrow holds the whole file


class Parquet(ArrowFile):
    """Columns id, text_hash, tokens and vector; others are left alone."""

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

    def write(self, identity: Identity, dimensions: int, blocks: Iterable[Block], rows: int) -> None:  # noqa: ARG002
        """Not compressed: vectors are noise to a compressor."""
        import pyarrow.parquet as pq

        shape = schema(identity, dimensions)
        with replacing(self.path) as part, pq.ParquetWriter(part, shape, compression="none") as writer:
            for table in tables(blocks, shape):
                writer.write_batch(table)
