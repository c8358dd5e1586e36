"""A `wikipedia.db`: summaries joined to articles, under these or other table and column names."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bakeoff_providers.errors import InputError

from bakeoff.core.task import DocumentChunking
from bakeoff.tasks.formats.native import Article
from bakeoff.testsets.content_types import with_content_type
from bakeoff.testsets.source_tables import split_categories

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
ARTICLE_COLUMNS = {"pageid": "pageid", "categories": "categories"}


def is_sqlite(path: Path) -> bool:
    """By the file's first bytes: names of databases end in anything."""
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\x00"


def read_database(path: Path, columns: Mapping[str, str], tables: tuple[str, str]) -> list[Article]:
    """Rows of a `wikipedia.db`: summaries joined to articles, other table and column names by option."""
    names = {**SUMMARY_COLUMNS, **ARTICLE_COLUMNS}
    for name in columns:
        if name not in names:
            raise InputError(f"unknown column option {name!r}", remedy=f"known: {', '.join(sorted(names))}")
    names |= columns
    left = ", ".join(f's."{names[name]}"' for name in SUMMARY_COLUMNS)
    statement = (
        f'SELECT {left}, a."{names["categories"]}" FROM "{tables[0]}" s '
        f'JOIN "{tables[1]}" a ON s."{names["page_id"]}" = a."{names["pageid"]}" ORDER BY 1'
    )
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute(statement).fetchall()
    except sqlite3.Error as error:
        raise InputError(str(error), file=path, remedy="name tables and columns with --table and --column") from None
    return [_article(path, names, row) for row in rows]


def _article(path: Path, names: Mapping[str, str], row: tuple[Any, ...]) -> Article:
    """One row; SQLite keeps values of any type in any column."""
    page_id, title, *others = row
    texts = dict(zip([*list(SUMMARY_COLUMNS)[1:], "categories"], [title, *others], strict=True))
    for name, value in texts.items():
        if not isinstance(value, str) and (value is not None or name == "title"):
            raise InputError(
                f"{names[name]} is {type(value).__name__}, not text", file=path, place=f"page {page_id!r:.40}"
            )
    if not isinstance(page_id, int | str):
        raise InputError(f"{names['page_id']} is {page_id!r:.40}, neither a number nor a text", file=path)
    short, long, city, county, state, categories = others
    return Article(
        page_id=page_id,
        title=title,
        summary=(long or short or "").strip(),
        city=city or None,
        county=county or None,
        state=state or None,
        categories=with_content_type(title, split_categories(categories or "")),
        embedding_metadata=DocumentChunking("whole", 512),
    )
