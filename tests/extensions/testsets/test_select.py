from __future__ import annotations

import datetime
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from bakeoff.core.files import read_json
from bakeoff.core.paths import root
from bakeoff.extensions.testsets.document_files import content_type, infer_content_type
from bakeoff.extensions.testsets.select import allocate, draw, read_pool, select
from bakeoff.tasks.formats.native import Article, ArticleFile
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses

POOL = root() / "corpora" / "wikipedia" / "articles.json"
DRAWN = root() / "corpora" / "wikipedia" / "evaluate_articles.json"


def test_the_shipped_sample_is_exactly_what_select_draws() -> None:
    shipped = read_json(DRAWN, ArticleFile)
    date = datetime.date.fromisoformat(shipped.metadata["selection_date"])
    assert select(read_pool(POOL)[0], n=25, seed=42, date=date) == shipped
    assert shipped.metadata["total_available"] == 54
    assert len(shipped.articles) == 25


def test_every_stratum_of_the_pool_is_in_the_sample() -> None:
    pool, drawn = read_pool(POOL)[0], read_json(DRAWN, ArticleFile).articles
    strata = Counter((article.state, content_type(article)) for article in pool)
    taken = Counter((article.state, content_type(article)) for article in drawn)
    assert set(strata) == set(taken)
    for stratum, size in strata.items():  # the proportional share is 25/54 of each, within one place
        assert abs(taken[stratum] - 25 * size / 54) <= 1


def test_another_seed_draws_others() -> None:
    pool, _ = read_pool(POOL)
    assert select(pool, seed=42).articles != select(pool, seed=43).articles


def test_places_by_largest_remainder_worked_by_hand() -> None:
    # exact shares of 10: 5.0, 3.33, 1.67 → floors 5, 3, 1; the last place goes to the largest remainder, c
    assert allocate({"a": 15, "b": 10, "c": 5}, 10) == {"a": 5, "b": 3, "c": 2}
    # shares of 3: 2.94 and 0.06: the small stratum still gets one
    assert allocate({"big": 98, "small": 2}, 3) == {"big": 2, "small": 1}
    # fewer places than strata: nobody is owed one, the largest remainders win
    assert sum(allocate({"a": 1, "b": 1, "c": 1}, 2).values()) == 2


@given(st.dictionaries(st.text("abcdef", min_size=1), st.integers(1, 40), min_size=1), st.data())
def test_places_add_up_and_fit(sizes: dict[str, int], data: st.DataObject) -> None:
    n = data.draw(st.integers(1, sum(sizes.values())))
    shares = allocate(sizes, n)
    assert sum(shares.values()) == n
    assert all(0 <= shares[name] <= sizes[name] for name in sizes)
    if n >= len(sizes):
        assert all(share >= 1 for share in shares.values())


def test_drawing_does_not_depend_on_the_order_of_the_pool() -> None:
    items = [f"{group}{number}" for group in "ab" for number in range(10)]
    forward = draw(items, 7, 1, stratum=lambda item: item[0], key=str)
    assert draw(items[::-1], 7, 1, stratum=lambda item: item[0], key=str) == forward


def test_more_than_there_are_is_refused() -> None:
    with refuses(InputError, "54"):
        select(read_pool(POOL)[0], n=55)


def test_articles_without_a_summary_are_not_drawn() -> None:
    pool = [Article(document_id=i, title="t", summary=" " if i % 2 else "text", categories=["city"]) for i in range(10)]
    drawn = select(pool, n=5)
    assert [article.document_id for article in drawn.articles] == [0, 2, 4, 6, 8]
    assert drawn.metadata["total_available"] == 10
    with refuses(InputError, "5"):
        select(pool, n=6)


def _database(path: Path, title: str = "title", table: str = "page_summaries") -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(
            f"CREATE TABLE {table} (page_id INTEGER, {title} TEXT, short_summary TEXT, long_summary TEXT, "
            "key_topics TEXT, best_city TEXT, best_county TEXT, best_state TEXT, overall_confidence REAL)"
        )
        connection.execute(
            "CREATE TABLE articles (pageid INTEGER, html_file TEXT, categories TEXT, latitude REAL, longitude REAL)"
        )
        rows = [
            (1, "Loa, Utah", "short", "long", "", "Loa", "Wayne", "Utah", 0.9),
            (2, "Wayne County, Utah", "only short", None, "", None, "Wayne", "Utah", 0.9),
            (3, "No Summary, Utah", None, "", "", None, None, "Utah", 0.1),
        ]
        connection.executemany(f"INSERT INTO {table} VALUES (?,?,?,?,?,?,?,?,?)", rows)
        connection.executemany(
            "INSERT INTO articles VALUES (?,?,?,?,?)",
            [(1, "", '["Towns in Utah"]', 0, 0), (2, "", "Utah counties", 0, 0), (3, "", "", 0, 0)],
        )


def test_a_database_is_joined_and_the_long_summary_preferred(tmp_path: Path) -> None:
    _database(tmp_path / "wikipedia.db")
    pool, _ = read_pool(tmp_path / "wikipedia.db")
    assert [article.summary for article in pool] == ["long", "only short", ""]
    assert [content_type(article) for article in pool] == ["city", "administrative region", "city"]
    assert [article.document_id for article in select(pool, n=2).articles] == [1, 2]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("title = NULL", "oneType"),
        ("title = x'00ff'", "page 2"),
        ("long_summary = x'00ff'", "long_summary"),
        ("best_state = x'00ff'", "best_state"),
    ],
)
def test_values_that_no_page_has_are_named(tmp_path: Path, change: str, said: str) -> None:
    """SQLite keeps bytes and NULL in a column of texts."""
    _database(tmp_path / "wikipedia.db")
    with sqlite3.connect(tmp_path / "wikipedia.db") as connection:
        connection.execute(f"UPDATE page_summaries SET {change} WHERE page_id = 2")
    with refuses(InputError, said, place="page 2", file="wikipedia.db") as caught:
        read_pool(tmp_path / "wikipedia.db")
    assert caught.value.place == "page 2"


def test_other_names_of_tables_and_columns(tmp_path: Path) -> None:
    _database(tmp_path / "own.db", title="heading", table="texts")
    with refuses(InputError, "page_summaries", file="own.db"):
        read_pool(tmp_path / "own.db")
    pool, _ = read_pool(tmp_path / "own.db", {"title": "heading"}, ("texts", "articles"))
    assert pool[0].title == "Loa, Utah"
    with refuses(InputError, "'heading'"):
        read_pool(tmp_path / "own.db", {"heading": "title"}, ("texts", "articles"))


@pytest.mark.parametrize(
    ("title", "tags", "kind"),
    [
        ("1971 San Francisco Bay oil spill", [], "event"),
        ("Eureka Historic District (Eureka, Utah)", [], "historical site"),
        ("Wayne County, Utah", [], "administrative region"),
        ("Oceanview, San Francisco", [], "neighborhood"),
        ("Cedar Mountains (Tooele County, Utah)", [], "natural feature"),
        ("Deer Creek State Park (Utah)", [], "landmark"),
        ("Loa", ["Towns in Wayne County, Utah"], "city"),
        ("Nothing known", [], "city"),
    ],
)
def test_content_type_of_a_database_row(title: str, tags: list[str], kind: str) -> None:
    assert infer_content_type(title, tags) == kind
