"""Drawing a sample: stratified over state × content type, the same for the same seed on every machine."""

from __future__ import annotations

import contextlib
import datetime
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from bakeoff_providers.errors import InputError

from bakeoff.core.files import read_json
from bakeoff.core.sampling import order_key
from bakeoff.core.task import Chunking
from bakeoff.tasks.formats.native import Article, ArticleFile

T = TypeVar("T")

METHOD = "stratified random over state × content type, summaries required"

# The first pattern that a title or a category matches gives the content type of a database row.
CONTENT_TYPES: Mapping[str, str] = {
    "event": r"\b(oil spill|earthquake|wildfire|disaster|massacre|battle|election|in (18|19|20)\d\d)\b",
    "historical site": r"histor|national register|ghost town|former (populated|settlement)|mission",
    "administrative region": r"^(?!.* in ).* county, (utah|california)$|^(utah|california) counties|"
    r"district$|court|mayors|government|legislat",
    "neighborhood": r"neighbou?rhood|, san francisco$|, san diego$",
    "natural feature": r"mountain|canyon|peninsula|river|lake|valley|landform",
    "landmark": r"park|bridge|librar|school|museum|building|road|parkway",
    "city": r"cit(y|ies)|town|census-designated|communit|populated place|, (utah|california)$",
}

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


def draw(items: Sequence[T], n: int, seed: int, *, stratum: Callable[[T], str], key: Callable[[T], str]) -> list[T]:
    """n items, every stratum in proportion and none left out while n allows; ordered by key.

    Within a stratum the order is that of a hash of seed and key, so no random generator's version matters.
    """
    if n > len(items):
        raise InputError(f"{n} asked for, but only {len(items)} can be drawn", remedy=f"ask for {len(items)} or fewer")
    groups: dict[str, list[T]] = defaultdict(list)
    for item in items:
        groups[stratum(item)].append(item)
    shares = allocate({name: len(members) for name, members in groups.items()}, n)
    drawn: list[T] = []
    for name, share in shares.items():
        drawn += sorted(groups[name], key=lambda item: order_key(seed, key(item)))[:share]
    return sorted(drawn, key=key)


def allocate(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """Places for each stratum: one each while n allows, the rest by largest remainder of the proportional share."""
    total = sum(sizes.values())
    floor = 1 if n >= len(sizes) else 0
    shares = {name: max(floor, n * sizes[name] // total) for name in sorted(sizes)}
    while sum(shares.values()) != n:
        # how far a stratum is below (or above) its exact share decides who gives or takes the next place
        owed = {name: n * sizes[name] / total - share for name, share in shares.items()}
        if sum(shares.values()) < n:
            open_ = [name for name in shares if shares[name] < sizes[name]]
            shares[max(open_, key=lambda name: owed[name])] += 1
        else:
            spare = [name for name in shares if shares[name] > floor]
            shares[min(spare, key=lambda name: owed[name])] -= 1
    return shares


def content_type(article: Article) -> str:
    """The category that says what kind of thing it is: a content type, or in other corpora the first of them."""
    types = [category for category in article.categories if category in CONTENT_TYPES]
    if len(types) > 1:
        raise InputError(
            f"page_id {article.page_id}: only one category may be a content type, found {len(types)}",
            remedy=f"content types: {', '.join(sorted(CONTENT_TYPES))}",
        )
    return next(iter([*types, *article.categories]), "unknown")


def select(pool: Sequence[Article], n: int = 25, seed: int = 42, *, date: datetime.date | None = None) -> ArticleFile:
    """The sample with its metadata, ready to be written as `evaluate_articles.json`."""
    eligible = [article for article in pool if article.summary.strip()]
    drawn = draw(
        eligible,
        n,
        seed,
        stratum=lambda article: f"{article.state or 'unknown'} / {content_type(article)}",
        key=lambda article: f"{article.page_id:012d}",
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
) -> list[Article]:
    """A pool from JSON or from a SQLite database, by the file's first bytes."""
    try:
        with path.open("rb") as file:
            is_sqlite = file.read(16) == b"SQLite format 3\x00"
    except OSError:
        raise InputError("no such file", file=path, remedy="name a JSON pool or a SQLite database") from None
    if is_sqlite:
        return read_database(path, columns or {}, tables or ("page_summaries", "articles"))
    return read_json(path, ArticleFile).articles


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
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            rows = connection.execute(statement).fetchall()
    except sqlite3.Error as error:
        raise InputError(str(error), file=path, remedy="name tables and columns with --table and --column") from None
    return [_article(row) for row in rows]


def _article(row: tuple[int, str, str | None, str | None, str | None, str | None, str | None, str | None]) -> Article:
    page_id, title, short, long, city, county, state, categories = row
    return Article(
        page_id=page_id,
        title=title,
        summary=(long or short or "").strip(),
        city=city or None,
        county=county or None,
        state=state or None,
        categories=typed(title, tags(categories or "")),
        embedding_metadata=Chunking("whole", 512),
    )


def tags(categories: str) -> list[str]:
    """The database keeps categories as a JSON array or as a list with separators; both occur."""
    if categories.lstrip().startswith("["):
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.json.decode(categories, type=list[str])
    return [part.strip() for part in re.split(r"[;|,\n]", categories) if part.strip()]


def typed(title: str, categories: Sequence[str]) -> list[str]:
    """The categories with the content type before them, exactly once, as `content_type` expects."""
    return [infer_content_type(title, categories), *(tag for tag in categories if tag not in CONTENT_TYPES)]


def infer_content_type(title: str, categories: Sequence[str]) -> str:
    """What kind of thing a row is about: by its title, then by its categories; a city if nothing fits."""
    for text in (title, *categories):
        for kind, pattern in CONTENT_TYPES.items():
            if re.search(pattern, text, re.IGNORECASE):
                return kind
    return "city"
