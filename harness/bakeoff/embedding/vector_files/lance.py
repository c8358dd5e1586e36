"""Vectors as a Lance data set, a folder; lancedb reads and writes it, and any Lance reader opens it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bakeoff.core.hashing import Identity
from bakeoff.embedding.vector_files.arrow import ArrowFile, schema, tables
from bakeoff.embedding.vector_files.base import Block

_ROWS = 8_192  # in memory at once


class Lance(ArrowFile):
    """Columns id, text_hash, tokens and vector; others are left alone."""

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

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        table = self._open()
        try:
            yield from table.search().select(columns).to_batches(batch_size=_ROWS)
        except Exception as error:
            raise self.wrong(f"is damaged ({_first_line(error)})") from None

    def write(self, identity: Identity, dimensions: int, blocks: Iterable[Block], rows: int) -> None:  # noqa: ARG002
        """Written under another name first: a folder that is there is replaced by a whole one."""
        import lancedb
        import pyarrow as pa

        shape = schema(identity, dimensions)
        parent = self.path.absolute().parent
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent, prefix=f".{self.path.stem}-") as draft:
            reader = pa.RecordBatchReader.from_batches(shape, tables(blocks, shape))
            lancedb.connect(draft).create_table(self.path.stem, reader, schema=shape)
            if self.path.exists():
                shutil.rmtree(self.path)
            (Path(draft) / f"{self.path.stem}.lance").rename(self.path)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
