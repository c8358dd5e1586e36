"""Import queries from a table, a text file or a search log."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.core.files import read_lines
from bakeoff.core.filters import parse_where
from bakeoff.core.task import AS_OF, normalise, parse_day
from bakeoff.extensions.testsets.corpus import LEFT_OUT
from bakeoff.extensions.testsets.generate import free_id
from bakeoff.tasks.formats.cells import Row
from bakeoff.tasks.formats.native import QueryEntry, QueryFile, count_categories
from bakeoff.tasks.formats.source_tables import columns_for, describe_columns, number_columns, other_columns
from bakeoff.tasks.formats.tables import read_table


@dataclass(slots=True)
class ImportedQueries:
    """The queries, the rows left out by their place in the file, and which column became which field."""

    file: QueryFile
    new: int = 0
    duplicates: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    taken: str = ""
    no_filter: str = ""


@dataclass(frozen=True, slots=True)
class _QueryRow:
    """One query of the source; `id` is empty if it has none."""

    place: str
    text: str
    id: str = ""
    category: str = ""
    language: str = ""
    as_of: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


def import_queries(
    path: Path,
    columns: Mapping[str, str],
    *,
    log: bool = False,
    most: int | None = None,
    existing: QueryFile | None = None,
    date: datetime.date | None = None,
) -> ImportedQueries:
    """Append queries under their own ids; leave out and list duplicates and empty ones."""
    entries = list(existing.queries) if existing else []
    metadata: dict[str, Any] = dict(existing.metadata) if existing else {}
    imported = ImportedQueries(QueryFile(metadata=metadata, queries=entries))
    places = {(normalise(entry.query_text), entry.as_of or ""): f"query {entry.query_id}" for entry in entries}
    ids = {entry.query_id: f"query {entry.query_id}" for entry in entries}
    for query in _of_log(path, columns) if log else _of_file(path, columns, imported):
        key = normalise(query.text), query.as_of
        if not query.text.strip():
            imported.empty.append(query.place)
        elif key in places:
            imported.duplicates.append(f"{query.place} = {places[key]}: {query.text}")
        elif most is None or imported.new < most:
            if query.id in ids:
                raise InputError(
                    f"query id {query.id!r} is taken by {ids[query.id]}", file=path, place=query.place,
                    remedy="use unique ids",
                )  # fmt: skip
            name = query.id or free_id(query.category or "query", ids)
            places[key], ids[name] = query.place, query.place
            entries.append(
                QueryEntry(
                    query_id=name,
                    query_text=query.text,
                    category=query.category,
                    language=query.language,
                    where=dict(query.where),
                    as_of=query.as_of or None,
                    metadata=dict(query.metadata),
                )
            )
            imported.new += 1
    if not imported.new:
        raise InputError(
            f"no query is left ({len(imported.empty)} empty, {len(imported.duplicates)} duplicates)", file=path,
            remedy="check --column text=…, or the source itself",
        )  # fmt: skip
    imported.file.categories = count_categories(entries)
    metadata |= {
        "queries": len(entries),
        "source": path.name,
        "imported": (date or datetime.date.today()).isoformat(),
        "empty": len(imported.empty),
        "duplicates": len(imported.duplicates),
        LEFT_OUT: {
            what: names for what, names in (("empty", imported.empty), ("duplicates", imported.duplicates)) if names
        },
    }
    return imported


def _of_file(path: Path, given: Mapping[str, str], imported: ImportedQueries) -> list[_QueryRow]:
    """Read one query per line from plain text; anything else is a table."""
    if Path(path.name.lower().removesuffix(".gz")).suffix != ".txt":
        return _of_table(path, given, imported)
    if given:
        raise InputError("has no columns; each line is a query", file=path, place="--column", remedy="omit it")
    imported.taken = "text = the line"
    queries = []
    for number, line in read_lines(path):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise InputError("is not UTF-8", file=path, place=f"line {number}", remedy="save it as UTF-8") from None
        queries.append(_QueryRow(f"line {number}", " ".join(text.split())))
    return queries


def _of_table(path: Path, given: Mapping[str, str], imported: ImportedQueries) -> list[_QueryRow]:
    rows = list(read_table(path).rows)
    columns = columns_for((row for _, row in rows), given, path, "queries")
    filters: list[dict[str, Any]] = [{}] * len(rows)
    if "where" in columns:
        cells = [(place, row.get(columns["where"])) for place, row in rows]
        if "where" in given or any(_is_object(cell) for _, cell in cells) or not any(cell for _, cell in cells):
            filters = [_filter(cell, path, place) for place, cell in cells]
        else:
            imported.no_filter = (
                f"{columns['where']} is kept as metadata, not as a filter, because no cell is an object"
            )
            del columns["where"]
    numbers = number_columns(path, [row for _, row in rows], columns)

    def cell(row: Row, name: str, place: str) -> str:
        value = row.get(columns[name]) if name in columns else None
        if value is not None and (isinstance(value, bool) or not isinstance(value, str | int)):
            raise InputError(f"{columns[name]} is {value!r}, not text", file=path, place=place)
        return "" if value is None else " ".join(str(value).split())

    queries = []
    for (place, row), where in zip(rows, filters, strict=True):
        texts = {name: cell(row, name, place) for name in ("id", "text", "category", "language")}
        texts["as_of"] = _day(row.get(columns.get("as_of", "")), path, place)
        queries.append(_QueryRow(place, where=where, metadata=other_columns(row, columns, numbers), **texts))
    imported.taken = describe_columns(
        columns, dict.fromkeys(name for query in queries for name in query.metadata), numbers
    )
    return queries


def _is_object(cell: Any) -> bool:
    """Whether a cell is meant as a filter, valid or not."""
    return cell.lstrip().startswith("{") if isinstance(cell, str) else isinstance(cell, Mapping)


def _filter(cell: Any, path: Path, place: str) -> dict[str, Any]:
    try:
        return parse_where(cell)
    except InputError as error:
        remedy = f"{error.remedy}; rename the column if it is not a filter"
        raise InputError(error.problem, file=path, place=place, remedy=remedy) from None


def _day(cell: Any, path: Path, place: str) -> str:
    try:
        return parse_day(cell, AS_OF)
    except InputError as error:
        remedy = f"{error.remedy}; rename the column if it holds no dates"
        raise InputError(error.problem, file=path, place=place, remedy=remedy) from None


def _of_log(path: Path, given: Mapping[str, str]) -> list[_QueryRow]:
    """Distinct queries with their counts, most frequent first."""
    column, asked = given.get("query", "query"), []
    for place, row in read_table(path).rows:
        if column not in row:
            remedy = f"{nearest(column, list(row))} --column query=NAME maps the log's column"
            raise InputError(f"there is no column {column!r}", file=path, place=place, remedy=remedy)
        asked.append(normalise(str(row[column] or "")))
    first = {query: place for place, query in reversed(list(enumerate(asked, start=1)))}
    return [
        _QueryRow(f"row {first[query]}", query, metadata={"asked": count})
        for query, count in Counter(asked).most_common()
    ]
