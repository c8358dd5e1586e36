"""CSV, JSONL, JSON, parquet and SQLite → rows with any column names."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from bakeoff_providers.errors import InputError

from bakeoff.tasks.formats.cells import Row

# What a column is commonly called, by table; the first that a file has is taken unless --column names another. A text
# comes before a title: a summary is the title of a description, and the text where there is nothing longer.
USUAL: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "documents": {
        "id": ("page_id", "id", "pageid", "_id", "doc_id", "docid", "document_id", "sku", "key", "url"),
        "text": (
            "text", "body", "content", "contents", "abstract", "description", "summary", "long_summary", "document"
        ),
        "title": ("title", "name", "heading", "headline", "subject", "summary"),
        "city": ("city", "best_city"),
        "county": ("county", "best_county"),
        "state": ("state", "best_state", "region"),
        "categories": ("categories", "category", "tags", "topics", "key_topics", "type"),
        "html_file": ("html_file",),
    },
    "queries": {
        "id": ("query_id", "id", "_id", "qid", "key"),
        "text": ("query_text", "text", "query", "question", "q"),
        "category": ("category", "type", "kind"),
        "language": ("language", "lang"),
        "where": ("where",),
        "as_of": ("as_of",),
    },
    "judgments": {
        "query": ("query", "query_id", "query-id", "qid", "query_key"),
        "document": ("document", "document_id", "doc_id", "docid", "corpus-id", "page_id", "sku", "doc"),
        "grade": ("grade", "score", "relevance", "label", "rel", "rating"),
    },
}  # fmt: skip
FILES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
TEXT_ONLY = (".csv", ".tsv")  # untyped files
# A leading zero is a zip code's or an article number's; what is longer than a store keeps exactly is no number either.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,14}")


def number_columns(path: Path, rows: Sequence[Row], columns: Mapping[str, str]) -> list[str]:
    """Metadata columns of an untyped file that hold only whole numbers or nothing.

    Fractions stay text: a filter compares texts and whole numbers only.
    """
    if Path(path.name.lower().removesuffix(".gz")).suffix not in TEXT_ONLY:
        return []
    others = [name for name in (rows[0] if rows else ()) if name not in columns.values()]
    return [
        name
        for name in others
        if (filled := [row[name].strip() for row in rows if row[name].strip()]) and all(map(_WHOLE.fullmatch, filled))
    ]


def tables_of(path: Path) -> dict[str, list[str]]:
    """The tables and views of a SQLite database with their columns."""
    with open_database(path) as connection:
        listed = connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"
        ).fetchall()
        return {
            name: [column[1] for column in connection.execute(f"PRAGMA table_info({quote_name(name)})")]
            for (name,) in listed
        }


def read_table(path: Path, table: str | None) -> list[Row]:
    """Rows of a SQLite table, by default the only one."""
    there = tables_of(path)
    if table is None and len(there) == 1:
        table = next(iter(there))
    if table not in there:
        problem = "holds several tables" if table is None else f"has no table {table!r}"
        raise InputError(problem, file=path, remedy=f"name one with --table: {', '.join(there) or 'there is none'}")
    with open_database(path) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"SELECT * FROM {quote_name(table)}")]


def columns_for(rows: Iterable[Row], given: Mapping[str, str], file: Path, table: str = "documents") -> dict[str, str]:
    """The column of each field, as given or by common names. A text column is required."""
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    if not names:
        raise InputError("has no rows", file=file, remedy="add at least one row")
    for field in given:
        if field not in USUAL[table]:
            raise InputError(
                f"unknown field {field!r}", place="--column", remedy=f"known: {', '.join(USUAL[table])}, as text=body"
            )
    columns = match_columns(names, given, USUAL[table], file)
    if "text" not in columns:
        raise InputError(
            "no column looks like the text",
            file=file,
            remedy=f"name it, as --column text=…; there are: {', '.join(names)}",
        )
    return columns


def match_columns(
    names: Sequence[str], given: Mapping[str, str], usual: Mapping[str, Sequence[str]], file: Path
) -> dict[str, str]:
    """The column of each field: the given one, else the first common name not yet in use."""
    there = {name.lower(): name for name in names}
    for name in given.values():
        if name.lower() not in there:
            raise InputError(
                f"there is no column {name!r}", file=file, place="--column", remedy=f"there are: {', '.join(names)}"
            )
    named = {field: there[name.lower()] for field, name in given.items()}
    columns: dict[str, str] = {}
    for field, words in usual.items():
        used = {*named.values(), *columns.values()}
        free = [there[word] for word in words if word in there and there[word] not in used]
        if column := named.get(field) or next(iter(free), ""):
            columns[field] = column
    return columns


def other_columns(row: Row, columns: Mapping[str, str], numbers: Collection[str] = ()) -> dict[str, Any]:
    """The other non-empty cells of a row: its metadata."""
    used = set(columns.values())
    others = {str(name): value for name, value in row.items() if name not in used and value is not None}
    filled = {name: value for name, value in others.items() if value != "" and (name not in numbers or value.strip())}
    return {name: int(value) if name in numbers else value for name, value in filled.items()}


def describe_columns(columns: Mapping[str, str], metadata: Iterable[str], numbers: Collection[str] = ()) -> str:
    """Describes in one line which column became which field."""
    fields = ", ".join(f"{field} = {column}" for field, column in columns.items())
    others = [f"{name} (numbers)" if name in numbers else name for name in metadata]
    return fields + (f"; metadata: {', '.join(others)}" if others else "")


@contextlib.contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database read-only. Damage shows only when its pages are read."""
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise InputError(f"can't be read: {error}", file=path) from None


def quote_name(name: str) -> str:
    """A table's or a column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def split_list(value: Any) -> Iterator[str]:
    """Split a list, a JSON array, or a string with separators."""
    if isinstance(value, (list, tuple)):
        yield from (str(item).strip() for item in value if str(item).strip())
    elif value is not None:
        yield from split_categories(str(value))


def split_categories(categories: str) -> list[str]:
    """Split categories from a JSON array or a string with separators."""
    if categories.lstrip().startswith("["):
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.json.decode(categories, type=list[str])
    return [part.strip() for part in re.split(r"[;|,\n]", categories) if part.strip()]
