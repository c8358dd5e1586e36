"""What is there stays: no command writes over grades, tasks or files that nobody told it to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from bakeoff.core.paths import root, task_file
from bakeoff.extensions.testsets import new_task, task_folder
from bakeoff.tasks.formats.native import QueryFile
from bakeoff_providers.errors import InputError

from tests.cli.test_wrong_arguments import POOL, _digests, bakeoff
from tests.errors import refuses, says
from tests.native_task import native_files, pages, write_files


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_files(tmp_path, {"articles": native_files()["articles"]})
    (tmp_path / "asked.csv").write_text("id,text\nr1,where do boats sail\n")
    return tmp_path


@pytest.mark.parametrize("task", ["wikipedia", "wikipedia-paraphrased", "trips", "of-ones-own"])
@pytest.mark.parametrize(
    "command",
    [["generate", str(POOL), "--n", "1"], ["generate", str(POOL), "--n", "1", "--add"], ["import", "asked.csv"]],
    ids=["generate", "generate --add", "import"],
)
def test_queries_for_a_built_in_task_are_refused(
    home: Path, command: list[str], task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a copy of the built-in tasks, so that a fault spoils nothing; the last one is new, and would be among them."""
    shutil.copytree(root() / "queries", home / "built" / "queries")
    shutil.copytree(root() / "lineups", home / "built" / "lineups")
    monkeypatch.setattr(task_folder, "root", lambda: home / "built")
    before = _digests(home / "built")
    code, _, err = bakeoff(home, "queries", *command, "--out", f"built/queries/{task}")
    assert code == 2
    says(err, "built-in")
    assert ("bakeoff queries copy" in err) is (task != "of-ones-own")
    assert _digests(home / "built") == before


def test_queries_for_a_copied_task_leave_its_grades_and_its_description_alone(home: Path) -> None:
    assert bakeoff(home, "queries", "copy", "wikipedia", "mine")[0] == 0
    before = _digests(home / "mine")
    generate = ["queries", "generate", str(POOL), "--n", "1", "--out", "mine"]
    for command in (generate, ["queries", "import", "asked.csv", "--out", "mine"]):
        code, _, err = bakeoff(home, *command)
        assert code == 2
        says(err, "mine/evaluate_queries.json")
        says(err, "--add")
        assert _digests(home / "mine") == before
    code, out, err = bakeoff(home, *generate, "--add")
    assert code == 0, err
    assert "added: mine/evaluate_queries.json" in out
    code, out, err = bakeoff(home, "queries", "import", "asked.csv", "--out", "mine", "--add")
    assert code == 0, err
    assert "1 query added: mine/evaluate_queries.json" in out
    after = _digests(home / "mine")
    assert [Path(name).name for name in before if before[name] != after[name]] == ["evaluate_queries.json"]
    assert after.keys() == before.keys()
    texts = [entry["query_text"] for entry in json.loads((home / "mine/evaluate_queries.json").read_text())["queries"]]
    assert texts[-1] == "where do boats sail"
    shipped = json.loads((task_file("wikipedia").parent / "evaluate_queries.json").read_text())["queries"]
    assert texts[:20] == [entry["query_text"] for entry in shipped]


@pytest.mark.parametrize("name", ["ground_truth.json", "task.toml"])
def test_a_new_task_is_made_neither_over_grades_nor_over_a_description(home: Path, name: str) -> None:
    content = {"ground_truth.json": '{"grades": {"r1": {"2": 3}}}', "task.toml": 'format = "beir"\nfolder = "."\n'}
    (home / "there").mkdir()
    (home / "there" / name).write_text(content[name])
    before = _digests(home / "there")
    for command in (
        ["generate", "articles.json", "--max-overlap", "1"],
        ["import", "asked.csv"],
        ["import", "asked.csv", "--force"],
    ):
        code, _, err = bakeoff(home, "queries", *command, "--out", "there")
        assert code == 2
        assert f"there/{name}: " in err
        says(err, "--out")
        assert _digests(home / "there") == before


def test_a_task_is_written_only_where_none_is(home: Path) -> None:
    """The guard is in the one place that writes, whoever calls it."""

    new_task.write_task(home / "own", home / "articles.json", QueryFile(queries=[]))
    before = _digests(home / "own")
    with refuses(InputError, file="task.toml"):
        new_task.write_task(home / "own", home / "articles.json", QueryFile(queries=[]))
    assert _digests(home / "own") == before


LOG = [{"query": query, "shown": ["1", "2"], "clicked": ["2"]} for query in ["tin"] * 3 + ["ore"] * 2 + ["pit"]]


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("kept.json", ["agreement", "wikipedia", "--out", "kept.json"]),
        ("log.jsonl", ["log", "import", "raw.jsonl"]),
        ("queries.jsonl", ["log", "sample", "raw.jsonl", "--size", "6"]),
        ("judgments.csv", ["log", "judge", "raw.jsonl", "--widest", "1"]),
        ("kept.csv", ["log", "replay", "bm25", "tfidf+faiss", "--lineup", "two.toml", "--out", "kept.csv"]),
        ("fake-hash.canary", ["canary", "record", "fake", "--calls", "2"]),
        ("kept.html", ["corpus-size", "two.toml", "--contender", "bm25", "--sizes", "3", "--out", "kept.html"]),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_a_file_that_is_there_is_written_over_only_with_force(home: Path, file: str, command: list[str]) -> None:
    (home / "raw.jsonl").write_text("".join(json.dumps(row) + "\n" for row in LOG))
    ungraded = {"page_id": 99, "title": "Nothing", "summary": "nobody graded this"}
    write_files(home, native_files([*pages(), ungraded]))
    (home / "two.toml").write_text(
        'task = { format = "native", articles = "articles.json", queries = "queries.json", '
        'ground_truth = "truth.json" }\n'
        '[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n'
    )
    (home / file).write_text("mine")
    code, _, err = bakeoff(home, *command)
    assert code == 2, err
    says(err, f"{file}")
    assert "--force" in err
    assert (home / file).read_text() == "mine"
    code, out, err = bakeoff(home, *command, "--force")
    assert code == 0, out + err
    assert (home / file).read_bytes() != b"mine"
