"""A catalogue as it was on one day: a parquet or JSON file with a key for each item's vector, never the vector."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.files import replacing

from bakeoff.core.files import read_json, write_json
from bakeoff.core.hashing import text_key
from bakeoff.core.task import Document

KEY = "embedding_key"
Rows = list[dict[str, Any]]
_NAME = re.compile(r".+_snapshot_(\d{8})\.(parquet|json)")


def newest(path: Path) -> Path:
    """The snapshot that is named, or the newest in a folder."""
    if not path.is_dir():
        return path
    dated = {match[1]: file for file in path.iterdir() if (match := _NAME.fullmatch(file.name))}
    if not dated:
        raise InputError("holds no snapshot", file=path, remedy="name it …_snapshot_YYYYMMDD.parquet or .json")
    return dated[max(dated)]


def read_snapshot(file: Path, *, id_key: str, title_key: str, text_key_: str) -> list[Document]:
    """Items with all their columns as metadata. A key that does not fit the text says that the snapshot is stale."""
    if not file.is_file():
        raise InputError("no such file", file=file, remedy="check the path")
    rows, names, vectors = _json_rows(file) if file.suffix == ".json" else _parquet_rows(file)
    for column in (id_key, title_key, text_key_, KEY):
        if column not in names:
            raise InputError(f"no column {column!r}", file=file, remedy=f"it has {', '.join(names)}")
    if vectors:
        raise InputError(f"column {vectors[0]!r} holds vectors", file=file, remedy="drop it: vectors live in the cache")
    documents = []
    for place, row in enumerate(rows):
        document = Document(
            id=str(row[id_key]),
            title=str(row[title_key] or ""),
            text=str(row[text_key_] or ""),
            metadata={key: value for key, value in row.items() if key not in (id_key, title_key, text_key_, KEY)},
        )
        if row[KEY] != embedding_key(document):
            raise InputError(
                f"{KEY} of {document.id!r} does not fit its text", file=file, place=f"row {place + 1}",
                remedy="make the snapshot again (bakeoff snapshot)",
            )  # fmt: skip
        documents.append(document)
    return documents


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
    """`<source>_snapshot_YYYYMMDD.parquet`, or `.json`, from a JSON list of items."""
    items = read_json(source, list[dict[str, Any]])
    for place, item in enumerate(items):
        for key in (id_key, title_key, text_key_):
            if not item.get(key):
                raise InputError(f"an item without {key!r}", file=source, place=f"$[{place}]")
    rows = [{**item, KEY: embedding_key(_document(item, id_key, title_key, text_key_))} for item in items]
    target = folder / f"{source.stem}_snapshot_{date:%Y%m%d}.{suffix}"
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
    """The name of the document's text in every space of the cache."""
    return text_key(document.whole()).hex()


def _document(item: Mapping[str, Any], id_key: str, title_key: str, text_key_: str) -> Document:
    return Document(id=str(item[id_key]), title=str(item[title_key]), text=str(item[text_key_]))


def _parquet() -> Any:
    try:
        return import_module("pyarrow.parquet")
    except ImportError:
        raise Unavailable("a snapshot is read with pyarrow: install bakeoff[parquet]") from None


def columns_of(documents: Sequence[Document]) -> set[str]:
    """The attributes that rules may name."""
    return set().union(*(document.metadata for document in documents)) if documents else set()
