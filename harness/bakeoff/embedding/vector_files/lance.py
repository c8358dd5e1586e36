"""Vectors as a Lance data set, a folder; lancedb reads and writes it, and any Lance reader opens it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bakeoff_providers.files import draft_of, writing

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

    def write(self, identity: Identity, dimensions: int, blocks: Iterable[Block], rows: int) -> None:  # noqa: ARG002
        """Written under another name first: a folder that is there is replaced by a whole one."""
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
