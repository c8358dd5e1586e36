"""Plain tables: documents, queries and judgments in CSV, TSV, JSON, JSONL or parquet, under any column names."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import missing_modules

from bakeoff.core.files import first_wrong_byte, open_unpacked, read_json, read_json_blocks
from bakeoff.core.task import Task
from bakeoff.tasks.formats.cells import Block, Numbered, Rows
from bakeoff.tasks.formats.rows import (
    ColumnNames,
    Columns,
    DropEmpty,
    DropNegative,
    DropUnknown,
    Grades,
    IgnoreIdenticalIds,
    JudgedOnly,
    Leniency,
    Rel,
    task_of,
)
from bakeoff.tasks.formats.trec import qrels_rows

LONGEST_FIELD = 2**31 - 1  # Python's csv stops at 128 kB otherwise, and documents are longer


def load(
    name: str,
    base: Path,
    documents: Annotated[str, "table of documents"],
    queries: Annotated[str, "table of queries"],
    judgments: Annotated[str, "table of judgments, or TREC qrels; optional"] = "",
    columns: ColumnNames = None,
    grades: Grades = None,
    rel: Rel = 1,
    drop_negative: DropNegative = False,
    drop_unknown: DropUnknown = False,
    drop_empty: DropEmpty = False,
    ignore_identical_ids: IgnoreIdenticalIds = False,
    judged_only: JudgedOnly = False,
) -> Task:
    """Loads three tables; `grades` maps labels to numbers. Judgments may be TREC qrels, or missing."""
    return task_of(
        name,
        read_table(base / documents),
        read_table(base / queries),
        read_table(base / judgments) if judgments else Rows(base, ()),
        Columns().rename(columns),
        grades=grades,
        rel=rel,
        lenient=Leniency(
            drop_negative=drop_negative,
            drop_unknown=drop_unknown,
            drop_empty=drop_empty,
            judged_only=judged_only,
            ignore_identical_ids=ignore_identical_ids,
        ),
    )


def read_table(path: Path) -> Rows:
    """Read a table by its file extension, with or without `.gz`."""
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in READERS and suffix not in JSON_LINES:
        raise InputError(
            f"a table's name can't end in {suffix!r}" if suffix else "the name has no extension",
            file=path,
            remedy=f"known: {', '.join((*READERS, *JSON_LINES))}, and .gz after any of them",
        )
    return _json_lines(path) if suffix in JSON_LINES else Rows.of(path, READERS[suffix](path))


def _read_separated(path: Path) -> Numbered:
    """Read CSV or TSV. The header decides the delimiter and the number of columns."""
    csv.field_size_limit(LONGEST_FIELD)
    try:
        with open_unpacked(path) as stream, io.TextIOWrapper(stream, encoding="utf-8", newline="") as text:
            first = text.readline()
            delimiter = max(",;\t", key=first.count)
            yield from _cells(csv.reader(chain([first], text), delimiter=delimiter, strict=True), path)
    except UnicodeDecodeError:  # it counts from the beginning of a block
        place = first_wrong_byte(path)
        raise InputError(f"is not UTF-8 (byte {place})", file=path, remedy="save it as UTF-8") from None


def _cells(reader: Any, path: Path) -> Numbered:
    head: list[str] | None = None
    line = 1
    try:
        for cells in reader:
            place, line = f"line {line}", reader.line_num + 1
            if not cells:
                continue
            if head is None:
                head = [cell.strip() for cell in cells]
                if len(set(head)) < len(head):
                    raise InputError("two columns have the same name", file=path, place=place)
            elif len(cells) != len(head):
                raise InputError(
                    f"has {len(cells)} columns, the first line has {len(head)}", file=path, place=place
                )  # fmt: skip
            else:
                yield place, dict(zip(head, cells, strict=True))
    except csv.Error as error:
        raise InputError(
            f"is not valid CSV: {error}",
            file=path,
            place=f"line {line}",
            remedy="double the quotation marks, or use JSONL",
        ) from None


def _json_lines(path: Path) -> Rows:
    def blocks() -> Iterator[Block]:
        for first, rows in read_json_blocks(path, dict[str, Any]):
            yield Block(rows, partial(_line, first))

    return Rows(path, blocks())


def _line(first: int, number: int) -> str:
    return f"line {first + number}"


def _json(path: Path) -> Numbered:
    for number, row in enumerate(read_json(path, list[dict[str, Any]])):
        yield f"$[{number}]", row


def _parquet(path: Path) -> Numbered:
    if reason := missing_modules(("pyarrow",), "parquet"):
        raise InputError("can't be read without pyarrow", file=path, remedy=reason)
    import pyarrow
    import pyarrow.parquet

    if not path.is_file():
        raise InputError("no such file", file=path, remedy="check the path")
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    number += 1
                    yield f"row {number}", row
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"is not valid parquet: {error}", file=path) from None


JSON_LINES = (".jsonl", ".ndjson")
READERS: dict[str, Callable[[Path], Numbered]] = {
    ".csv": _read_separated,
    ".tsv": _read_separated,
    ".json": _json,
    ".parquet": _parquet,
    ".qrels": qrels_rows,
    ".trec": qrels_rows,
    ".txt": qrels_rows,
}
