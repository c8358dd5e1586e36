"""Read a `wikipedia.db`, in which summaries are joined to articles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bakeoff_providers.errors import InputError

from bakeoff.core.files import check_regular
from bakeoff.core.task import DocumentChunking
from bakeoff.extensions.testsets.document_files import with_content_type
from bakeoff.tasks.formats.native import Article
from bakeoff.tasks.formats.source_tables import open_database, quote_name, split_categories, tables_of

REMEDY = "name tables and columns with --table and --column"
TABLES = ("page_summaries", "articles")
SUMMARY_COLUMNS = {
    "page_id": "page_id",
    "title": "title",
    "short_summary": "short_summary",
    "long_summary": "long_summary",
    "city": "best_city",
    "county": "best_county",
    "state": "best_state",
}
ARTICLE_COLUMNS = {"pageid": "pageid", "categories": "categories", "html_file": "html_file"}
NEEDED = ("page_id", "title", "pageid")  # and one of the summaries
FIELDS = (*SUMMARY_COLUMNS, "categories", "html_file")  # of a row


def is_sqlite(path: Path) -> bool:
    """Check the first bytes, since databases have no fixed suffix."""
    check_regular(path)
    if not path.is_file():  # a pipe can't be read twice
        return False
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\x00"


def read_database(path: Path, columns: Mapping[str, str], tables: tuple[str, str]) -> list[Article]:
    """Join summaries to articles; tables and columns may have other names."""
    names = {**SUMMARY_COLUMNS, **ARTICLE_COLUMNS}
    for name in columns:
        if name not in names:
            raise InputError(f"unknown column option {name!r}", remedy=f"known: {', '.join(sorted(names))}")
    names |= columns
    found = _columns(path, names, tables)
    for name in (*columns, *NEEDED, *(() if "short_summary" in found else ("long_summary",))):
        if name not in found:
            raise InputError(f"no such column: {names[name]}", file=path, remedy=REMEDY)
    statement = (
        f"SELECT {', '.join(found.get(name, 'NULL') for name in FIELDS)} FROM {quote_name(tables[0])} s "
        f"JOIN {quote_name(tables[1])} a ON {found['page_id']} = {found['pageid']} ORDER BY 1"
    )
    with open_database(path) as connection:
        return [_article(path, names, dict(zip(FIELDS, row, strict=True))) for row in connection.execute(statement)]


def _columns(path: Path, names: Mapping[str, str], tables: tuple[str, str]) -> dict[str, str]:
    """The existing columns as SQL, from their own table or else from the other one."""
    there = tables_of(path)
    if missing := [table for table in tables if table not in there]:
        raise InputError(f"no such table: {missing[0]}", file=path, remedy=f"{REMEDY}; there are: {', '.join(there)}")
    s, a = (
        {column.lower(): f"{alias}.{quote_name(column)}" for column in there[table]}
        for alias, table in zip("sa", tables, strict=True)
    )
    found = {}
    for name, column in names.items():
        own, other = (a, s) if name in ARTICLE_COLUMNS else (s, a)
        if sql := own.get(column.lower()) or other.get(column.lower()):
            found[name] = sql
    return found


def _article(path: Path, names: Mapping[str, str], row: Mapping[str, Any]) -> Article:
    """Check types, since SQLite stores values of any type in any column."""
    page_id, title = row["page_id"], row["title"]
    for name, value in row.items():
        if name != "page_id" and not isinstance(value, str) and (value is not None or name == "title"):
            raise InputError(
                f"{names[name]} is {type(value).__name__}, not text", file=path, place=f"page {page_id!r:.40}"
            )
    if not isinstance(page_id, int | str):
        raise InputError(f"{names['page_id']} is {page_id!r:.40}, neither a number nor text", file=path)
    return Article(
        document_id=page_id,
        title=title,
        summary=(row["long_summary"] or row["short_summary"] or "").strip(),
        city=row["city"] or None,
        county=row["county"] or None,
        state=row["state"] or None,
        categories=with_content_type(title, split_categories(row["categories"] or "")),
        html_file=row["html_file"] or None,
        embedding_metadata=DocumentChunking("whole", 512),
    )
