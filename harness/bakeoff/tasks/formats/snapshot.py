"""A catalogue as it was on one day: a parquet file that keeps a key for each item's vector, never the vector."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.files import replacing

from bakeoff.core.files import read_json
from bakeoff.core.hashing import text_key
from bakeoff.core.task import Document

KEY = "embedding_key"
_NAME = re.compile(r".+_snapshot_(\d{8})\.parquet")


def newest(path: Path) -> Path:
    """The snapshot that is named, or the newest in a folder."""
    if not path.is_dir():
        return path
    dated = {match[1]: file for file in path.iterdir() if (match := _NAME.fullmatch(file.name))}
    if not dated:
        raise InputError("holds no snapshot", file=path, remedy="name it …_snapshot_YYYYMMDD.parquet")
    return dated[max(dated)]


def read_snapshot(file: Path, *, id_key: str, title_key: str, text_key_: str) -> list[Document]:
    """Items with all their columns as metadata. A key that does not fit the text says that the snapshot is stale."""
    parquet: Any = _parquet()
    if not file.is_file():
        raise InputError("no such file", file=file, remedy="check the path")
    try:
        table = parquet.read_table(file)
    except (OSError, ValueError) as error:
        raise InputError(f"unreadable: {error}", file=file) from None
    for column in (id_key, title_key, text_key_, KEY):
        if column not in table.column_names:
            raise InputError(f"no column {column!r}", file=file, remedy=f"it has {', '.join(table.column_names)}")
    for field in table.schema:
        if re.match(r"(large_|fixed_size_)?list<.*(float|double|halffloat)", str(field.type)):
            raise InputError(
                f"column {field.name!r} holds vectors", file=file, remedy="drop it: vectors live in the cache"
            )
    documents = []
    for place, row in enumerate(table.to_pylist()):
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


def write_snapshot(
    source: Path, folder: Path, date: datetime.date, *, id_key: str, title_key: str, text_key_: str
) -> Path:
    """`<source>_snapshot_YYYYMMDD.parquet` from a JSON list of items."""
    items = read_json(source, list[dict[str, Any]])
    for place, item in enumerate(items):
        for key in (id_key, title_key, text_key_):
            if not item.get(key):
                raise InputError(f"an item without {key!r}", file=source, place=f"$[{place}]")
    parquet, arrow = _parquet(), import_module("pyarrow")
    rows = [{**item, KEY: embedding_key(_document(item, id_key, title_key, text_key_))} for item in items]
    target = folder / f"{source.stem}_snapshot_{date:%Y%m%d}.parquet"
    try:
        table = arrow.Table.from_pylist(rows)
    except (arrow.ArrowException, OverflowError, TypeError, ValueError) as error:
        problem = f"values of one column are of several types or too large ({error})"
        raise InputError(problem, file=source, remedy="give each key values of one type") from None
    with replacing(target) as part:
        parquet.write_table(table, part)
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
