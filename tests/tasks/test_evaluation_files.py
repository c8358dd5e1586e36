"""The files that the Wikipedia evaluation framework document prints, in every command that reads them."""

from __future__ import annotations

import json
import math
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from bakeoff.cli.main import app
from bakeoff.core.paths import root, task_file
from bakeoff.core.task import Task
from bakeoff.extensions.testsets.task_folder import TaskFolder
from bakeoff.tasks.load import load_task
from bakeoff_providers.errors import InputError
from typer.testing import CliRunner

from tests.errors import refuses
from tests.facts import arguments, ids
from tests.native_task import annotate

ARTICLES = """{
  "articles": [
    {
      "page_id": 82025,
      "title": "Monterey County, California",
      "summary": "Monterey County, located on California's Pacific coast...",
      "city": null,
      "state": "California",
      "county": "Monterey",
      "categories": ["coastal", "agricultural", "tourist_destination"],
      "html_file": "data/wikipedia/pages/82025_hash.html",
      "embedding_metadata": {
        "chunk_strategy": "semantic",
        "max_chunk_size": 512
      }
    }
  ],
  "metadata": {
    "selection_date": "2024-01-XX",
    "total_available": 464,
    "selection_method": "stratified_random",
    "seed": 42
  }
}"""
QUERIES = """{
  "queries": [
    {
      "query_id": "geo_001",
      "query_text": "What cities are near Park City, Utah?",
      "category": "geographic",
      "expected_results": [137118, 108719, 115710],
      "relevance_annotations": {
        "137118": 3,  // Silver Summit - highly relevant
        "108719": 2,  // Park City - relevant
        "115710": 2,  // Summit County - relevant
        "82025": 0    // Monterey County - not relevant
      }
    }
  ],
  "categories": {
    "geographic": 4,
    "landmark": 4,
    "historical": 4,
    "administrative": 4,
    "semantic": 4
  }
}"""
OTHERS = {
    137118: "Silver Summit is a census-designated place near Park City, Utah.",
    108719: "Park City is a city in Utah.",
    115710: "Summit County is a county in Utah.",
}
LINEUP = """[task]
format = "native"
articles = "evaluate_articles.json"
queries = "evaluate_queries.json"
{more}
[[contender]]
ranker = "bm25"
"""


def _write(folder: Path, *, others: bool = True, more: str = "") -> Path:
    """The two files; with the articles that the query names beside the one that is printed."""
    file = json.loads(ARTICLES)
    if others:
        file["articles"] += [{"page_id": page, "title": "x", "summary": text} for page, text in OTHERS.items()]
    (folder / "evaluate_articles.json").write_text(json.dumps(file) if others else ARTICLES)
    (folder / "evaluate_queries.json").write_text(QUERIES)
    (folder / "own.toml").write_text(LINEUP.replace("{more}", more))
    (folder / "task.toml").write_text(LINEUP.split("[[contender]]")[0].replace("{more}", more).replace("[task]", ""))
    return folder


def _load(folder: Path) -> Task:
    return load_task("task.toml", folder)


def test_the_files_load_as_they_are_printed(tmp_path: Path) -> None:
    task = _load(_write(tmp_path, others=False))
    assert [(document.id, document.chunking.chunk_strategy) for document in task.documents] == [("82025", "semantic")]
    assert task.judgments == {"geo_001": {"82025": 0}}
    (lost,) = arguments(task.notes, "unknown_graded")
    assert set(lost["documents"]) == {str(page) for page in OTHERS}
    (counts,) = arguments(task.notes, "wrong_counts")
    wrong = zip(counts["categories"], counts["given"], counts["found"], strict=True)
    assert {("geographic", 4, 1), ("landmark", 4, 0)} <= set(wrong)


@pytest.mark.parametrize("rel", [1, 2])
def test_without_a_ground_truth_the_annotations_are_the_grades(tmp_path: Path, rel: int) -> None:
    _write(tmp_path, more=f"rel = {rel}")
    file = json.loads((tmp_path / "evaluate_articles.json").read_text())
    (tmp_path / "evaluate_articles.json").write_text(
        json.dumps({**file, "articles": [*file["articles"], {"page_id": 5, "title": "f", "summary": "fifth"}]})
    )
    queries = (tmp_path / "evaluate_queries.json").read_text()
    (tmp_path / "evaluate_queries.json").write_text(queries.replace("[137118, 108719, 115710]", "[137118, 5]"))
    task = _load(tmp_path)
    assert task.judgments["geo_001"] == {"137118": 3, "108719": 2, "115710": 2, "82025": 0, "5": rel}
    assert "unknown_graded" not in ids(task.notes)


def test_an_expected_result_that_is_graded_low_is_mentioned_and_its_grade_counts(tmp_path: Path) -> None:
    _write(tmp_path)
    (tmp_path / "evaluate_queries.json").write_text(QUERIES.replace("115710]", "115710, 82025]"))
    task = _load(tmp_path)
    assert task.judgments["geo_001"]["82025"] == 0
    (low,) = arguments(task.notes, "expected_below")
    assert (low["queries"], low["documents"]) == (["geo_001"], ["82025"])


@pytest.mark.parametrize(
    ("settled", "pairs", "others"),
    [
        ({"137118": 3, "108719": 2, "115710": 2, "82025": 0}, [], []),
        ({"137118": 3, "108719": 2, "115710": 2}, [], []),  # a pair without a grade counts as 0
        ({"137118": 3, "108719": 1, "115710": 2, "82025": 1}, ["geo_001 108719", "geo_001 82025"], ["115710"]),
        ({"137118": 3, "115710": 2}, ["geo_001 108719"], ["115710", "82025"]),
    ],
)
def test_pairs_that_differ_from_the_ground_truth_are_named(
    tmp_path: Path, settled: dict[str, int], pairs: list[str], others: list[str]
) -> None:
    _write(tmp_path, more="rel = 2")
    (tmp_path / "ground_truth.json").write_text(json.dumps({"grades": {"geo_001": settled}}))
    if not pairs:
        assert _load(tmp_path).judgments == {"geo_001": settled}
        return
    with pytest.raises(InputError) as caught:
        _load(tmp_path)
    assert caught.value.file == tmp_path / "evaluate_queries.json"
    assert all(pair in caught.value.problem for pair in pairs)
    assert not any(other in caught.value.problem for other in others)


def test_expected_results_must_be_relevant_in_the_ground_truth_but_need_not_be_all(tmp_path: Path) -> None:
    _write(tmp_path, more="rel = 2")
    entry = {"query_id": "geo_001", "query_text": "q", "expected_results": [137118, 108719]}
    (tmp_path / "evaluate_queries.json").write_text(json.dumps({"queries": [entry]}))
    settled = {"137118": 3, "108719": 2, "115710": 2}
    (tmp_path / "ground_truth.json").write_text(json.dumps({"grades": {"geo_001": settled}}))
    assert _load(tmp_path).judgments == {"geo_001": settled}
    (tmp_path / "ground_truth.json").write_text(json.dumps({"grades": {"geo_001": {**settled, "108719": 1}}}))
    with refuses(InputError, "geo_001", "108719", place="$.queries[0].expected_results.108719"):
        _load(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [('"82025": 0', '"82025": 4', "82025"), ('"82025": 0', '"137118": 0', "twice")],
)
def test_grades_in_a_query_file_are_checked_as_those_of_a_ground_truth(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    _write(tmp_path)
    (tmp_path / "evaluate_queries.json").write_text(QUERIES.replace(old, new))
    with pytest.raises(InputError) as caught:
        _load(tmp_path)
    assert caught.value.file == tmp_path / "evaluate_queries.json"
    assert said in str(caught.value)


def test_grades_that_are_given_later_join_those_of_the_query_file(tmp_path: Path) -> None:
    folder = tmp_path / "task"
    folder.mkdir()
    _write(folder)
    annotate(tmp_path, "ada", {"geo_001": {"82025": 1, "108719": 3}})
    TaskFolder.open(str(folder / "task.toml")).write_truth()
    written = json.loads((folder / "ground_truth.json").read_text())["grades"]
    assert written == {"geo_001": {"137118": 3, "108719": 3, "115710": 2, "82025": 1}}
    assert _load(folder).judgments == written
    queries = json.loads((folder / "evaluate_queries.json").read_text())  # comments are gone with the grades
    assert queries["categories"]["geographic"] == 4
    assert "relevance_annotations" not in queries["queries"][0]


def _command(*arguments: str) -> str:
    """What a command says, stderr included; it must succeed."""
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})
    assert done.exit_code == 0, done.output
    return done.output


def test_run_scores_by_the_annotations_and_warns(tmp_path: Path) -> None:
    _write(tmp_path)
    said = _command("run", str(tmp_path / "own.toml"), "--out", str(tmp_path / "out"))
    assert "geographic 4 (1 " in said
    (result,) = (tmp_path / "out").iterdir()
    ranked = [line.split()[2] for line in (result / "runs" / "bm25.trec").read_text().splitlines()]
    grades = {"137118": 3, "108719": 2, "115710": 2}
    dcg = sum(grades.get(page, 0) / math.log2(place + 2) for place, page in enumerate(ranked))
    ideal = sum(grade / math.log2(place + 2) for place, grade in enumerate([3, 2, 2]))
    summary = json.loads((result / "metrics_summary.json").read_text())
    (row,) = (row for row in summary["rows"] if row["label"] == "bm25")
    assert row["measures"]["ndcg@10"]["mean"] == pytest.approx(dcg / ideal)
    (counts,) = (one["arguments"] for one in summary["warnings"] if one["id"] == "wrong_counts")
    assert (counts["categories"][0], counts["given"][0], counts["found"][0]) == ("geographic", 4, 1)


def test_validate_warns(tmp_path: Path) -> None:
    _write(tmp_path)
    file = json.loads((tmp_path / "evaluate_articles.json").read_text())
    file["articles"] = file["articles"][:-1]  # without Summit County
    (tmp_path / "evaluate_articles.json").write_text(json.dumps(file))
    assert "geo_001 115710" in _command("validate", str(tmp_path / "own.toml"))


def test_a_run_in_which_no_named_article_is_there_says_which_are_missing(tmp_path: Path) -> None:
    _write(tmp_path, others=False)
    done = CliRunner().invoke(app, ["run", str(tmp_path / "own.toml"), "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, InputError)  # exit 2
    assert all(str(page) in done.output for page in OTHERS)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", [["select", "--n", "1"], ["corpus", "import"]])
def test_what_an_article_has_is_kept(tmp_path: Path, command: list[str]) -> None:
    _write(tmp_path, others=False)
    pool, out = tmp_path / "evaluate_articles.json", tmp_path / "out.json"
    printed = json.loads(ARTICLES)["articles"][0]
    pool.write_text(ARTICLES.replace('"city": null,', '"city": null, "wikidata": "Q108072", // an item'))
    said = _command(*command, str(pool), "--out", str(out))
    assert "wikidata" in said
    (written,) = json.loads(out.read_text())["articles"]
    assert {key: written[key] for key in printed} == printed
    assert written["metadata"] == {"wikidata": "Q108072"}


def test_import_keeps_how_articles_are_cut_unless_it_is_told_otherwise(tmp_path: Path) -> None:
    _write(tmp_path, others=False)
    pool, out = tmp_path / "evaluate_articles.json", tmp_path / "out.json"
    _command("corpus", "import", str(pool), "--out", str(out), "--chunks", "whole")
    (written,) = json.loads(out.read_text())["articles"]
    assert written["embedding_metadata"]["chunk_strategy"] == "whole"
    assert json.loads(out.read_text())["metadata"]["total_available"] == 464  # what the file says of itself


def _rows(path: Path, tables: dict[str, list[dict[str, Any]]]) -> Path:
    with sqlite3.connect(path) as connection:
        for table, rows in tables.items():
            connection.execute(f"CREATE TABLE {table} ({', '.join(rows[0])})")
            for row in rows:
                connection.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(row))})", [*row.values()])
    return path


def _select(path: Path, n: int) -> list[dict[str, Any]]:
    out = path.with_name("drawn.json")
    _command("select", str(path), "--n", str(n), "--out", str(out), "--force")
    articles: list[dict[str, Any]] = json.loads(out.read_text())["articles"]
    return articles


def test_a_database_fills_html_file_and_needs_no_categories(tmp_path: Path) -> None:
    summaries = [
        {"page_id": 1, "title": "Loa, Utah", "short_summary": "s", "long_summary": "Loa", "best_city": "Loa",
         "best_county": "Wayne", "best_state": "Utah"},
        {"page_id": 2, "title": "Wayne County, Utah", "short_summary": "s", "long_summary": "Wayne", "best_city": None,
         "best_county": "Wayne", "best_state": "Utah"},
    ]  # fmt: skip
    articles: list[dict[str, Any]] = [{"pageid": 1, "html_file": "pages/1_x.html"}, {"pageid": 2, "html_file": None}]
    path = _rows(tmp_path / "wikipedia.db", {"page_summaries": summaries, "articles": articles})
    drawn = _select(path, 2)
    assert [(one["page_id"], one["html_file"]) for one in drawn] == [(1, "pages/1_x.html"), (2, None)]
    assert [one["categories"] for one in drawn] == [["city"], ["administrative region"]]


def test_a_database_of_one_plain_table_needs_no_options(tmp_path: Path) -> None:
    titles = {7: ("Loa, Utah", "Utah"), 8: ("Napa County, California", "California"), 9: ("Empty, Utah", "Utah")}
    rows: list[dict[str, Any]] = [
        {"page_id": page, "title": title, "summary": "" if page == 9 else f"{title} is a place.", "state": state,
         "categories": '["Places"]', "html_file": f"pages/{page}.html", "latitude": 38.4}
        for page, (title, state) in titles.items()
    ]  # fmt: skip
    first, second = _select(_rows(tmp_path / "plain.db", {"wiki": rows}), 2)
    assert first == {
        "page_id": 7, "title": "Loa, Utah", "summary": "Loa, Utah is a place.", "city": None, "county": None,
        "state": "Utah", "categories": ["city", "Places"], "html_file": "pages/7.html",
        "embedding_metadata": {"chunk_strategy": "whole", "max_chunk_size": 512}, "metadata": {"latitude": 38.4},
    }  # fmt: skip
    assert (second["page_id"], second["html_file"]) == (8, "pages/8.html")


@pytest.mark.parametrize("name", ["wikipedia", "wikipedia-paraphrased", "wikipedia-multilingual"])
def test_the_built_in_files_are_an_example_of_the_schema(name: str) -> None:
    queries = json.loads((task_file(name).parent / "evaluate_queries.json").read_text())
    named = [query["category"] for query in queries["queries"]]
    assert queries["categories"] == {category: named.count(category) for category in named}
    articles = json.loads((root() / "corpora" / "wikipedia" / "evaluate_articles.json").read_text())["articles"]
    assert {*json.loads(ARTICLES)["articles"][0]} <= {*articles[0]}
    assert load_task(name, Path()).notes == []
