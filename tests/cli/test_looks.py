"""Planned looks by the commands that a user types, and looks that nobody planned, on a task whose truth is known."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bakeoff.extensions.testsets.task_folder import TaskFolder
from bakeoff.results.current import current_summary
from bakeoff.results.schema import Summary, find, read_detailed, read_summary
from bakeoff.tasks.looks import LookPlan, read_state, write_plan
from bakeoff_providers.errors import InputError

from tests.errors import refuses, says
from tests.terminal import bakeoff
from tests.wire import PROXIES, WireServer

LINEUP = """
task = "task.toml"
measures = ["ndcg@10"]
rounds = 1
[[contender]]
ranker = "bm25"
[[contender]]
provider = "fake"
store = "faiss"
"""
TASK = 'format = "tables"\ndocuments = "documents.jsonl"\nqueries = "queries.jsonl"\njudgments = "judgments.jsonl"\n'
WORDS = [f"word{number}" for number in range(200)]


def relevant(query: str) -> str:
    """Query q7 is answered by document d7 alone."""
    return f"d{query.removeprefix('q')}"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """80 documents of ten words, 80 queries of two of these words and one of others; nothing is graded."""
    rng = random.Random(1)
    texts = [rng.sample(WORDS, 10) for _ in range(80)]
    documents = [{"id": f"d{at}", "title": f"d{at}", "text": " ".join(text)} for at, text in enumerate(texts)]
    asked = [" ".join([*rng.sample(text, 2), *rng.sample(WORDS, 1)]) for text in texts]
    queries = [{"id": f"q{at}", "text": text} for at, text in enumerate(asked)]
    for name, rows in (("documents", documents), ("queries", queries), ("judgments", [])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "task.toml").write_text(TASK)
    (tmp_path / "bakeoff.toml").write_text(LINEUP)
    return tmp_path


def grade(home: Path, queries: list[str]) -> None:
    rows = [{"query": query, "document": relevant(query), "grade": 1} for query in queries]
    (home / "judgments.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def say(home: Path, *arguments: str, code: int = 0, **environment: str) -> str:
    with pytest.MonkeyPatch.context() as patch:
        for name in PROXIES:
            patch.delenv(name, raising=False)
        done = bakeoff(*arguments, cwd=home, **{"BAKEOFF_HOME": str(home / "cache"), **environment})
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def plan(home: Path) -> LookPlan:
    say(home, "plan-queries", "--variance", "0.05", "--difference", "0.3", "--looks", "2", "--task", "task.toml")
    return LookPlan(**json.loads((home / "looks.json").read_text()))


def run(home: Path) -> Summary:
    before = set(find(home / "results"))
    say(home, "run", "bakeoff.toml", "--no-charts", "--offline")
    (new,) = set(find(home / "results")) - before
    return read_summary(new)


def test_a_plan_is_written_once_and_runs_know_their_look(home: Path) -> None:
    planned = plan(home)
    assert len(planned.queries) == 2
    assert planned.queries[0] == -(-planned.queries[1] // 2)
    assert sorted(planned.order) == sorted(f"q{at}" for at in range(80))
    assert planned.order != sorted(planned.order)
    says(say(home, "plan-queries", "--variance", "0.05", "--difference", "0.3", "--looks", "2", "--task", "task.toml",
             code=2), "looks.json")  # fmt: skip
    grade(home, planned.order[: planned.queries[0] - 1])
    says(say(home, "run", "bakeoff.toml", code=2), "looks.json", str(planned.queries[0]), "--until-decided")
    grade(home, planned.order[: planned.queries[0] + 3])  # what is beyond the look waits
    first = run(home)
    assert first.verdict.look is not None
    assert (first.verdict.look.number, first.verdict.look.queries, first.verdict.look.planned) == (
        1,
        planned.queries,
        True,
    )
    assert first.task.queries == planned.queries[0]
    (folder,) = find(home / "results")
    assert list(read_detailed(folder).queries) == planned.order[: planned.queries[0]]
    grade(home, planned.order)
    second = run(home)
    assert second.verdict.look is not None
    assert (second.verdict.look.number, second.task.queries) == (2, planned.queries[1])
    newest = max(find(home / "results"))
    restated = current_summary(newest, baseline="bm25").verdict
    assert restated.look == second.verdict.look
    assert restated.standings["bm25"].p == second.verdict.standings["bm25"].p


def test_a_later_look_that_nobody_planned_is_found_among_the_results(home: Path) -> None:
    grade(home, [f"q{at}" for at in range(20)])
    assert run(home).verdict.look is None
    assert run(home).verdict.look is None  # the same queries again are no new look
    grade(home, [f"q{at}" for at in range(30)])
    second = run(home).verdict
    assert second.look is not None
    assert (second.look.number, second.look.queries, second.look.planned) == (2, [20, 30], False)
    grade(home, [f"q{at}" for at in range(40)])
    third = run(home).verdict
    assert third.look is not None
    assert third.look.queries == [20, 30, 40]
    newest = max(find(home / "results"))
    joined = [info.look for info in read_detailed(newest).queries.values()]
    assert joined[:40] == [1] * 20 + [2] * 10 + [3] * 10
    assert current_summary(newest, equivalent_within=0.1).verdict.standings["bm25"].p == third.standings["bm25"].p
    lineup = LINEUP.replace("ndcg@10", "mrr")
    (home / "bakeoff.toml").write_text(lineup)
    assert run(home).verdict.look is None  # another measure is another question


def judge(_model: str, prompt: str) -> str:
    """Relevant is the document that has the first two words of the query."""
    words = prompt.partition("Query: ")[2].partition("\n")[0].split()[:2]
    document = prompt.partition("Document: ")[2].split()
    return json.dumps({"reason": "read", "grade": 3 if all(word in document for word in words) else 0})


@pytest.fixture
def wire() -> Iterator[WireServer]:
    with WireServer() as server:
        server.answer = judge
        yield server


def test_grading_goes_from_look_to_look_until_the_plan_decides(home: Path, wire: WireServer) -> None:
    planned = plan(home)
    says(say(home, "grade", "next", "task.toml"), f"{planned.queries[0]} queries")
    command = ["grade", "task.toml", "--judge", "llm", "--until-decided", "--all-below", "0", "--depth", "3"]
    said = say(home, *command, OLLAMA_HOST=wire.url)
    graded: dict[str, Any] = json.loads((home / "ground_truth.json").read_text())["grades"]
    assert set(graded) in [set(planned.order[:number]) for number in planned.queries]
    look = planned.queries.index(len(graded)) + 1
    says(said, f"Look {look} of 2")
    assert f"Look {look} of 2. Settled" in said or look == 2


def test_until_decided_needs_a_plan(home: Path) -> None:
    says(say(home, "grade", "task.toml", "--until-decided", code=2), "task.toml", "--looks 5")


@pytest.mark.parametrize(
    ("change", "place"),
    [({"order": ["q0", "q0"]}, "$.order"), ({"order": ["nobody"]}, "$.order"), ({"queries": [2, 2]}, None),
     ({"alpha": 0.01}, "$.alpha")],
)  # fmt: skip
def test_a_plan_that_does_not_fit_the_task_is_refused(home: Path, change: dict[str, Any], place: str | None) -> None:
    folder = TaskFolder.open(str(home / "task.toml"))
    write_plan(home, folder.query_ids, [20, 40], "ndcg@10", 0.1)
    content = json.loads((home / "looks.json").read_text())
    (home / "looks.json").write_text(json.dumps(content | change))
    with refuses(InputError, file="looks.json", place=place) if place else refuses(InputError, file="looks.json"):
        read_state(home, folder.task)


def test_a_plan_for_more_queries_than_there_are_is_refused(home: Path) -> None:
    with refuses(InputError, "81", "80"):
        write_plan(home, [f"q{at}" for at in range(80)], [40, 81], "ndcg@10", 0.1)
    assert not (home / "looks.json").exists()
