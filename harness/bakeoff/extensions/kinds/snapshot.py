"""A dated catalogue in Parquet or JSON. It may hold the keys of vectors, never vectors."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.files import replacing

from bakeoff.core.facts import Fact, fact
from bakeoff.core.files import read_json, write_json
from bakeoff.core.hashing import text_key
from bakeoff.core.task import Document

KEY = "embedding_key"
Rows = list[dict[str, Any]]
_DATED = re.compile(r"_snapshot_\d{8}$")
_NAME = re.compile(r".+_snapshot_(\d{8})\.(parquet|json)")


def newest(path: Path) -> Path:
    """The named snapshot, or the newest in a folder."""
    if not path.is_dir():
        return path
    dated = {match[1]: file for file in path.iterdir() if (match := _NAME.fullmatch(file.name))}
    if not dated:
        raise InputError("holds no snapshot", file=path, remedy="name it …_snapshot_YYYYMMDD.parquet or .json")
    return dated[max(dated)]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Items with their columns as metadata, the `embedding_key` of each that has one, and notes for the report."""

    documents: list[Document]
    keys: Mapping[str, str]
    notes: list[Fact]


def read_snapshot(file: Path, *, id_key: str, title_key: str, text_key_: str) -> Snapshot:
    """Read a snapshot. Vectors are looked up by text, so a missing or foreign key is only a note."""
    rows = _rows(file, (id_key, title_key, text_key_))
    documents, keys, others = [], {}, 0
    for row in rows:
        document = Document(
            id=str(row[id_key]),
            title=str(row[title_key] or ""),
            text=str(row[text_key_] or ""),
            metadata={key: value for key, value in row.items() if key not in (id_key, title_key, text_key_, KEY)},
        )
        documents.append(document)
        if key := row.get(KEY):
            keys[document.id] = str(key)
        others += bool(key) and key != embedding_key(document)
    notes = []
    if lacking := len(rows) - len(keys):
        notes.append(fact("kinds.items_without_key", count=lacking, items=len(rows), key=KEY))
    if others:
        notes.append(fact("kinds.foreign_keys", count=others, items=len(rows), key=KEY))
    return Snapshot(documents, keys, notes)


def _rows(file: Path, needed: Sequence[str]) -> Rows:
    """The rows of a Parquet file or a JSON list. Refuse missing columns and columns of vectors."""
    if not file.is_file():
        raise InputError("no such file", file=file, remedy="check the path")
    rows, names, vectors = _parquet_rows(file) if file.suffix in (".parquet", ".pq") else _json_rows(file)
    for column in needed:
        if column not in names:
            raise InputError(f"no column {column!r}", file=file, remedy=f"it has {', '.join(names)}")
    if vectors:
        raise InputError(
            f"column {vectors[0]!r} holds vectors", file=file, remedy="drop it; vectors belong in the cache"
        )
    return rows


def _json_rows(file: Path) -> tuple[Rows, list[str], list[str]]:
    """Rows, the names of their columns, and which of these hold vectors."""
    rows = read_json(file, list[dict[str, Any]])
    names = list(dict.fromkeys(name for row in rows for name in row))
    vectors = [name for name in names if any(_is_vector(row.get(name)) for row in rows)]
    return [{name: row.get(name) for name in names} for row in rows], names, vectors


def _is_vector(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(part, float) for part in value)


def _parquet_rows(file: Path) -> tuple[Rows, list[str], list[str]]:
    try:
        table = _parquet().read_table(file)
    except (OSError, ValueError) as error:
        raise InputError(f"unreadable: {error}", file=file) from None
    lists = re.compile(r"(large_|fixed_size_)?list<.*(float|double|halffloat)")
    vectors = [field.name for field in table.schema if lists.match(str(field.type))]
    return table.to_pylist(), list(table.column_names), vectors


def write_snapshot(
    source: Path,
    folder: Path,
    date: datetime.date,
    *,
    id_key: str,
    title_key: str,
    text_key_: str,
    suffix: str = "parquet",
) -> Path:
    """`<source>_snapshot_YYYYMMDD.parquet`, or `.json`, from a JSON list of items, a parquet file or a snapshot."""
    needed = (id_key, title_key, text_key_)
    items = _rows(source, needed)
    for place, item in enumerate(items, 1):
        for key in needed:
            if not item[key]:
                raise InputError(f"an item without {key!r}", file=source, place=f"row {place}")
    rows = [{**item, KEY: embedding_key(_document(item, id_key, title_key, text_key_))} for item in items]
    target = folder / f"{_DATED.sub('', source.stem)}_snapshot_{date:%Y%m%d}.{suffix}"
    if target.resolve() == source.resolve():
        raise InputError("would be overwritten by its own snapshot", file=source, remedy="give another --out or --date")
    if suffix == "json":
        write_json(target, rows)
        return target
    parquet, arrow = _parquet(), import_module("pyarrow")
    try:
        with replacing(target) as part:
            parquet.write_table(arrow.Table.from_pylist(rows), part)
    except (arrow.ArrowException, OverflowError, TypeError, ValueError) as error:
        problem = f"values of one column are of several types or too large ({error})"
        raise InputError(problem, file=source, remedy="give each key values of one type") from None
    return target


def embedding_key(document: Document) -> str:
    """The cache key of the document's text."""
    return text_key(document.whole()).hex()


def _document(item: Mapping[str, Any], id_key: str, title_key: str, text_key_: str) -> Document:
    return Document(id=str(item[id_key]), title=str(item[title_key]), text=str(item[text_key_]))


def _parquet() -> Any:
    try:
        return import_module("pyarrow.parquet")
    except ImportError:
        raise Unavailable("a snapshot is read with pyarrow: install bakeoff[parquet]") from None


def columns_of(documents: Sequence[Document]) -> set[str]:
    """The attributes available to rules."""
    return set().union(*(document.metadata for document in documents)) if documents else set()
