"""CSV, JSONL, JSON, parquet and SQLite → rows, whatever their columns are called."""

from __future__ import annotations

import csv
import io
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.build.select import tags
from harness.files import read_bytes
from providers.errors import InputError, Unavailable
from providers.registry import missing_modules

Row = Mapping[str, Any]

# What a field is commonly called; the first that a table has is taken unless --column names another.
NAMES: Mapping[str, tuple[str, ...]] = {
    "id": ("page_id", "id", "pageid", "_id", "doc_id", "docid", "document_id", "key"),
    "title": ("title", "name", "heading", "headline", "subject"),
    "text": ("text", "summary", "body", "content", "abstract", "description", "long_summary", "document"),
    "city": ("city", "best_city"),
    "county": ("county", "best_county"),
    "state": ("state", "best_state", "region"),
    "categories": ("categories", "category", "tags", "topics", "key_topics", "type"),
}
csv.field_size_limit(2**31 - 1)


def read_delimited(path: Path) -> list[Row]:
    """CSV or TSV with a header, by the delimiter that its first line shows."""
    try:
        content = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 (byte {error.start})", file=path, remedy="save it as UTF-8") from None
    head = content.partition("\n")[0]
    delimiter = max("\t;,", key=head.count)
    reader = csv.DictReader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
    try:
        rows: list[Row] = []
        for row in reader:
            if None in row or None in row.values():
                raise InputError(
                    "has another number of fields than the header", file=path, place=f"line {reader.line_num}",
                    remedy="quote fields that hold the delimiter",
                )  # fmt: skip
            rows.append(row)
        return rows
    except csv.Error as error:
        raise InputError(f"is no CSV: {error}", file=path, place=f"line {reader.line_num}") from None


def read_json_lines(path: Path) -> list[Row]:
    """One object a line."""
    rows: list[Row] = []
    for number, line in enumerate(read_bytes(path).splitlines(), start=1):
        if line.strip():
            try:
                rows.append(msgspec.json.decode(line, type=dict[str, Any]))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise InputError(f"is no JSON object: {error}", file=path, place=f"line {number}") from None
    return rows


def read_parquet(path: Path) -> list[Row]:
    """A parquet file, by pyarrow."""
    if reason := missing_modules(("pyarrow",), "parquet"):
        raise Unavailable(f"parquet needs pyarrow: {reason}")
    import pyarrow
    import pyarrow.parquet

    try:
        return list(pyarrow.parquet.read_table(path).to_pylist())
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"is no parquet file: {str(error).splitlines()[0]}", file=path) from None


def tables_of(path: Path) -> dict[str, list[str]]:
    """The tables and views of a SQLite database with their columns."""
    with _database(path) as connection:
        listed = connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"
        ).fetchall()
        return {
            name: [column[1] for column in connection.execute(f"PRAGMA table_info({_quoted(name)})")]
            for (name,) in listed
        }


def read_table(path: Path, table: str | None) -> list[Row]:
    """The rows of one table of a SQLite database; the only one where none is named."""
    tables = tables_of(path)
    if table is None and len(tables) == 1:
        table = next(iter(tables))
    if table not in tables:
        problem = "holds several tables" if table is None else f"has no table {table!r}"
        raise InputError(problem, file=path, remedy=f"name one with --table: {', '.join(tables) or 'there is none'}")
    with _database(path) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"SELECT * FROM {_quoted(table)}")]


READERS: Mapping[str, Callable[[Path], list[Row]]] = {
    ".csv": read_delimited,
    ".tsv": read_delimited,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".parquet": read_parquet,
}


def columns_for(rows: Iterable[Row], given: Mapping[str, str], file: Path) -> dict[str, str]:
    """Which column holds which field: what the user says, then what it is commonly called."""
    first = next(iter(rows), None)
    if first is None:
        raise InputError("has no rows", file=file)
    there = {str(name).lower(): str(name) for name in first}
    found: dict[str, str] = {}
    for field in given:
        if field not in NAMES:
            raise InputError(
                f"unknown field {field!r}", place="--column", remedy=f"known: {', '.join(NAMES)}, as text=body"
            )
    for field, names in NAMES.items():
        wanted = (given[field],) if field in given else names
        known = next((there[name.lower()] for name in wanted if name.lower() in there), None)
        if known is not None:
            found[field] = known
        elif field in given:
            raise InputError(f"there is no column {given[field]!r}", file=file, remedy=f"there are: {', '.join(there)}")
    if "text" not in found:
        raise InputError(
            "no column looks like the text",
            file=file,
            remedy=f"name it, as --column text=…; there are: {', '.join(there)}",
        )
    return found


def _database(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        connection.execute("SELECT count(*) FROM sqlite_master")
        return connection
    except sqlite3.Error as error:
        raise InputError(f"can't be read: {error}", file=path) from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def listed(value: Any) -> Iterator[str]:
    """A list that is one, or is written as JSON, or with separators."""
    if isinstance(value, (list, tuple)):
        yield from (str(item).strip() for item in value if str(item).strip())
    elif value is not None:
        yield from tags(str(value))
