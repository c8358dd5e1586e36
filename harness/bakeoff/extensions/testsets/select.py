"""Draw a sample stratified over state × content type, reproducible by its seed on every machine."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from bakeoff_providers.errors import InputError

from bakeoff.core.data_files import read_data
from bakeoff.core.facts import Fact
from bakeoff.core.hashing import order_key
from bakeoff.extensions.testsets.corpus import Options, from_table
from bakeoff.extensions.testsets.document_files import content_type, with_content_type
from bakeoff.extensions.testsets.wikipedia_database import TABLES, is_sqlite, read_database
from bakeoff.tasks.formats.native import Article, ArticleFile
from bakeoff.tasks.formats.source_tables import read_table, tables_of

T = TypeVar("T")

METHOD = "stratified random over state × content type, summaries required"


def draw(items: Sequence[T], n: int, seed: int, *, stratum: Callable[[T], str], key: Callable[[T], str]) -> list[T]:
    """Draw n items in proportion to the strata, at least one of each if n allows; sorted by key.

    Within a stratum, items are ordered by a hash of seed and key, so the result does not depend on a random generator.
    """
    if n > len(items):
        raise InputError(f"can't draw {n} of {len(items)}", remedy=f"ask for {len(items)} or fewer")
    groups: dict[str, list[T]] = defaultdict(list)
    for item in items:
        groups[stratum(item)].append(item)
    shares = allocate({name: len(members) for name, members in groups.items()}, n)
    drawn: list[T] = []
    for name, share in shares.items():
        drawn += sorted(groups[name], key=lambda item: order_key(seed, key(item)))[:share]
    return sorted(drawn, key=key)


def allocate(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """Allocate n places: one per stratum if n allows, the rest by the largest remainder."""
    total = sum(sizes.values())
    floor = 1 if n >= len(sizes) else 0
    shares = {name: max(floor, n * sizes[name] // total) for name in sorted(sizes)}
    while sum(shares.values()) != n:
        # the stratum furthest below (above) its exact share gains (loses) a place
        owed = {name: n * sizes[name] / total - share for name, share in shares.items()}
        if sum(shares.values()) < n:
            open_ = [name for name in shares if shares[name] < sizes[name]]
            shares[max(open_, key=lambda name: owed[name])] += 1
        else:
            spare = [name for name in shares if shares[name] > floor]
            shares[min(spare, key=lambda name: owed[name])] -= 1
    return shares


def select(pool: Sequence[Article], n: int = 25, seed: int = 42, *, date: datetime.date | None = None) -> ArticleFile:
    """Draw the sample and its metadata, in the format of `evaluate_articles.json`."""
    eligible = [article for article in pool if article.summary.strip()]
    drawn = draw(
        eligible,
        n,
        seed,
        stratum=lambda article: f"{article.state or 'unknown'} / {content_type(article)}",
        key=lambda article: str(article.document_id).zfill(12),
    )
    metadata = {
        "selection_date": (date or datetime.date.today()).isoformat(),
        "total_available": len(pool),
        "eligible": len(eligible),
        "selected": len(drawn),
        "selection_method": METHOD,
        "seed": seed,
    }
    return ArticleFile(metadata=metadata, articles=drawn)


def read_pool(
    path: Path, columns: Mapping[str, str] | None = None, tables: tuple[str, str] | None = None
) -> tuple[list[Article], list[Fact]]:
    """Read a pool from JSON or SQLite, told apart by the first bytes; also return notes on unknown JSON keys."""
    try:
        sqlite = is_sqlite(path)
    except OSError:
        raise InputError("no such file", file=path, remedy="name a JSON pool or a SQLite database") from None
    if not sqlite:
        file, notes = read_data(path, ArticleFile)
        return file.articles, notes
    if tables is None and len(tables_of(path)) == 1:
        return _only_table(path, columns or {}), []
    return read_database(path, columns or {}, tables or TABLES), []


def _only_table(path: Path, columns: Mapping[str, str]) -> list[Article]:
    """Rows of a database's only table; places get a content type, as in a `wikipedia.db`."""
    rows = [article for _, article in from_table(path, read_table(path, None), Options(columns)).documents]
    for row in rows:
        if row.city or row.county or row.state:
            row.categories = with_content_type(row.title, row.categories)
    return [Article(**msgspec.structs.asdict(row)) for row in rows]
