"""Queries that ask for the same thing share a cluster: every format reads it, results keep it, and it counts once."""

from __future__ import annotations

import json
from pathlib import Path

import bakeoff
import numpy as np
import pytest
from bakeoff.core.task import Task
from bakeoff.results.result import load
from bakeoff.statistics.averaging import task_averaging
from bakeoff.tasks.load import load_task

CORPUS = {f"d{at}": f"word{at} word{at + 1}" for at in range(9)}
CLUSTERS = ["lamps", "lamps", "", "desks"]


def _task() -> Task:
    queries = {
        f"q{at}": {"text": f"word{at}", **({"cluster": name} if name else {})} for at, name in enumerate(CLUSTERS)
    }
    return Task.from_dicts(CORPUS, queries, {f"q{at}": {f"d{at}": 1} for at in range(4)})


def _clusters(task: Task) -> list[str]:
    return [query.cluster for query in task.queries]


def test_tables_beir_and_native_files_have_clusters(tmp_path: Path) -> None:
    (tmp_path / "documents.csv").write_text("id,text\nd,word\n")
    (tmp_path / "queries.csv").write_text("id,text,cluster,need\nq,word,lamps,a\nr,word,,a\n")
    table = {"format": "tables", "documents": "documents.csv", "queries": "queries.csv"}
    assert _clusters(load_task(table, tmp_path)) == ["lamps", ""]
    renamed = {**table, "columns": {"queries": {"cluster": "need"}}}
    assert _clusters(load_task(renamed, tmp_path)) == ["a", "a"]
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d", "text": "word"}\n')
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "q", "text": "word", "metadata": {"cluster": "lamps"}}\n{"_id": "r", "text": "word", "cluster": "x"}\n'
    )
    assert _clusters(load_task({"format": "beir"}, tmp_path)) == ["lamps", "x"]
    (tmp_path / "articles.json").write_text(json.dumps({"articles": [{"page_id": 1, "title": "t", "summary": "s"}]}))
    entries = [{"query_id": "q", "query_text": "a", "cluster": "lamps"}, {"query_id": "r", "query_text": "b"}]
    (tmp_path / "asked.json").write_text(json.dumps({"queries": entries}))
    native = {"format": "native", "articles": "articles.json", "queries": "asked.json"}
    assert _clusters(load_task(native, tmp_path)) == ["lamps", ""]


def test_a_result_keeps_clusters_and_counts_needs(tmp_path: Path) -> None:
    task = _task()
    found = bakeoff.evaluate({"bm25": {"ranker": "bm25"}, "fake": {"provider": "fake"}}, task, measures=["ndcg@10"])
    saved = load(found.save(tmp_path / "result"))
    assert (saved.summary.task.clusters, saved.averaging().clusters) == (3, 3)
    assert saved.averaging().linear(np.ones(4)) == pytest.approx(np.ones(3))


def test_clusters_are_no_part_of_the_fingerprint() -> None:
    plain = Task.from_dicts(
        CORPUS, {f"q{at}": f"word{at}" for at in range(4)}, {f"q{at}": {f"d{at}": 1} for at in range(4)}
    )
    assert plain.fingerprint() == _task().fingerprint()


@pytest.mark.parametrize(("name", "queries", "needs"), [("wikipedia-multilingual", 40, 20), ("time-bound", 18, 12)])
def test_built_in_tasks_that_ask_twice_say_so(name: str, queries: int, needs: int) -> None:
    task = load_task(name, Path())
    assert (len(task.queries), task_averaging(task).clusters) == (queries, needs)
