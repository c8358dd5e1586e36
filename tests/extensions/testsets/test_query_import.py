"""Queries that people have: what stays, what is left out and where it was, and what is never written over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bakeoff.extensions.testsets.query_import import import_queries
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.runner import run
from bakeoff.tasks.load import load_task
from bakeoff_providers.errors import InputError

from tests.cli.test_testsets import say
from tests.cli.test_wrong_arguments import bakeoff
from tests.errors import refuses, says
from tests.native_task import native_files, write_files

CSV = """id,query,category,lang,owner
r1,Where is my refund?,money,en,ada
,Wo ist mein Paket?,,de,
r3,   ,money,en,bob
r4,how do I pay,,,
r5,where is my  REFUND?,,,
"""
LOG = """time,query,shown,clicked
2026-11-01,old mines,1 2,1
2026-11-01,Lakes,1 2,
2026-11-02,old  Mines,2 1,2
2026-11-02,,1,
"""


def written(task: Path) -> list[dict[str, Any]]:
    return list(json.loads((task / "queries.json").read_text())["queries"])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_files(tmp_path, {"articles": native_files()["articles"]})
    (tmp_path / "asked.csv").write_text(CSV)
    (tmp_path / "log.csv").write_text(LOG)
    return tmp_path


def test_a_table_becomes_a_task_that_only_lacks_grades(home: Path) -> None:
    said = say(home, "queries", "import", "asked.csv")
    assert "3 queries imported: task/queries.json" in said
    says(said, "line 4")
    assert "duplicates, left out: 1\n  line 6 = line 2: where is my REFUND?\n" in said
    taken = "taken: id = id, text = query, category = category, language = lang; metadata: owner"
    assert taken in " ".join(said.split())
    assert said.endswith("next: bakeoff init task\n      bakeoff grade task --lineup bakeoff.toml\n")
    assert written(home / "task") == [
        {"query_id": "r1", "query_text": "Where is my refund?", "category": "money", "language": "en",
         "metadata": {"owner": "ada"}},
        {"query_id": "query_001", "query_text": "Wo ist mein Paket?", "language": "de"},
        {"query_id": "r4", "query_text": "how do I pay"},
    ]  # fmt: skip
    assert len(load_task("task", home).queries) == 3


def test_plain_lines_are_queries(home: Path) -> None:
    (home / "q.txt").write_bytes(b"\xef\xbb\xbfhow do I get my money back\n\n  winter tyres \nWINTER tyres")
    said = say(home, "queries", "import", "q.txt")
    says(said, "2 queries", "task/queries.json", "text = the")
    assert "line 4 = line 3: WINTER tyres" in said
    assert [query["query_text"] for query in written(home / "task")] == ["how do I get my money back", "winter tyres"]
    says(say(home, "queries", "import", "q.txt", "--force", "--column", "text=q", code=2), "q.txt", "--column")


def test_json_lines_keep_ids_that_are_numbers_and_metadata_of_any_shape(tmp_path: Path) -> None:
    rows = [{"qid": 7, "question": "a", "of": {"team": "x", "tags": [1, 2]}}, {"qid": 8, "question": "b", "of": None}]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    first, second = import_queries(tmp_path / "q.jsonl", {}).file.queries
    assert (first.query_id, first.metadata) == ("7", {"of": {"team": "x", "tags": [1, 2]}})
    assert (second.query_id, second.metadata) == ("8", {})


def test_a_log_gives_each_query_once_and_the_most_asked_first(home: Path) -> None:
    imported = import_queries(home / "log.csv", {}, log=True)
    assert [(entry.query_text, entry.metadata) for entry in imported.file.queries] == [
        ("old mines", {"asked": 2}),
        ("lakes", {"asked": 1}),
    ]
    assert imported.empty == ["row 4"]
    assert [entry.query_text for entry in import_queries(home / "log.csv", {}, log=True, most=1).file.queries] == [
        "old mines"
    ]
    with refuses(InputError, "'asked'", place="line 2", file="log.csv"):
        import_queries(home / "log.csv", {"query": "asked"}, log=True)


@pytest.mark.parametrize(
    ("content", "columns", "said"),
    [
        ("id,text\na,one\na,two\n", {}, "'a'"),
        ("id,words\na,one\n", {}, "q.csv"),
        ("id,words\na,one\n", {"text": "word"}, "'word'"),
        ("id,text\na,one\n", {"colour": "x"}, "'colour'"),
        ("id,text\n", {}, "q.csv"),
        ("id,text\na, \n", {}, "1"),
    ],
)
def test_what_is_refused(tmp_path: Path, content: str, columns: dict[str, str], said: str) -> None:
    (tmp_path / "q.csv").write_text(content)
    with refuses(InputError, said):
        import_queries(tmp_path / "q.csv", columns)


def test_queries_that_are_there_are_written_over_only_when_asked_and_never_when_graded(home: Path) -> None:
    say(home, "queries", "import", "asked.csv")
    before = written(home / "task")
    says(say(home, "queries", "import", "log.csv", "--log", code=2), "--add", "--force", "--out")
    assert "2 queries added" in say(home, "queries", "import", "log.csv", "--log", "--add")
    assert written(home / "task")[:3] == before
    assert [entry["query_id"] for entry in written(home / "task")[3:]] == ["query_002", "query_003"]
    say(home, "queries", "import", "asked.csv", "--force")
    assert written(home / "task") == before
    (home / "task" / "ground_truth.json").write_text('{"grades": {"r1": {"1": 3}}}')
    said = say(home, "queries", "import", "log.csv", "--log", "--force", code=2)
    says(said, "'r1'")
    assert written(home / "task") == before


def test_without_a_corpus_nothing_is_written(home: Path) -> None:
    (home / "articles.json").unlink()
    says(say(home, "queries", "import", "asked.csv", code=2), "articles.json")
    assert not (home / "task").exists()


def test_a_filter_is_the_querys_own(tmp_path: Path) -> None:
    (tmp_path / "goods.csv").write_text("sku,text,year\n1,lamp of oak,2023\n2,oak desk,2024\n3,oak chair,2024\n")
    say(tmp_path, "corpus", "import", "goods.csv")
    (tmp_path / "asked.csv").write_text(
        'id,query,where\na,oak,"{""year"": 2024}"\nb,desk,\nc,chair,"{""year"": ""2024""}"\n'
    )
    said = say(tmp_path, "queries", "import", "asked.csv")
    assert "taken: id = id, text = query, where = where\n" in said
    task = load_task("task", tmp_path)
    assert {query.id: dict(query.where) for query in task.queries} == {
        "a": {"year": 2024},
        "b": {},
        "c": {"year": "2024"},
    }
    (tmp_path / "bakeoff.toml").write_text('task = "task"\nmeasures = ["p@1"]\n[[contender]]\nranker = "bm25"\n')
    (tmp_path / "task" / "ground_truth.json").write_text('{"grades": {"a": {"1": 3, "2": 3}, "c": {"3": 3}}}')
    outcome = run(Lineup.read(tmp_path / "bakeoff.toml"))
    assert list(outcome.ran[0].rankings["a"].ids) == ["2", "3"]  # the document of 2023 is not searched
    says(say(tmp_path, "validate", "task"), "(where) of c")


def test_a_column_called_where_without_any_object_is_metadata_and_said_to_be(home: Path) -> None:
    (home / "asked.csv").write_text("query,where\nlakes,\nmines,in Utah\n")
    code, said, err = bakeoff(home, "queries", "import", "asked.csv")
    assert code == 0
    assert "metadata: where\n" in said
    says(err)
    assert written(home / "task")[1]["metadata"] == {"where": "in Utah"}
    said = say(home, "queries", "import", "asked.csv", "--column", "where=where", "--force", code=2)
    says(said, "asked.csv", "'in Utah'")


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ('"{""size"": {""lt"": 500}}"', "{'lt': 500}"),
        ('"{""size: 500}"', """'{"size: 500}'"""),
        ("in Utah", "'in Utah'"),
    ],
)
def test_one_wrong_filter_switches_off_no_other(home: Path, cell: str, problem: str) -> None:
    (home / "asked.csv").write_text(f'query,where\nlakes,"{{""state"": ""Utah""}}"\nmines,{cell}\n')
    said = say(home, "queries", "import", "asked.csv", code=2)
    says(said, "asked.csv", problem)
    says(said, '"language"', '"de"', '"year"', "2023", "2024")
    assert not (home / "task").exists()


def test_filters_that_no_document_passes_are_named_when_they_are_imported(home: Path) -> None:
    (home / "one.jsonl").write_text('{"query": "lakes", "where": {"year": 1999}}\n')
    code, said, err = bakeoff(home, "queries", "import", "one.jsonl")
    assert (code, "1 query imported" in said) == (0, True)
    says(err, "query_001")
