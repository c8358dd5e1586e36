"""Rankings that someone else made, for any kind of task."""

from __future__ import annotations

from pathlib import Path

import pytest
from bakeoff.core.task import Document, Query, Task
from bakeoff.tasks.kinds.base import read_rankings
from bakeoff_providers.errors import InputError

from tests.errors import refuses

TASK = Task(
    name="t",
    documents=[Document(id=name, text="") for name in "abc"],
    queries=[Query(id="q1", text=""), Query(id="q2", text="", item="a")],
    judgments={},
)


def test_the_listed_order_counts_unless_there_are_scores(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text(
        '{"query": "q1", "ranked": ["c", "a"]}\n\n{"query": "q2", "ranked": ["a", "c", "b"], "scores": [1, 0.1, 0.5]}\n'
    )
    rankings = read_rankings(file, TASK)
    assert rankings["q1"].ids == ("c", "a")
    assert rankings["q2"].ids == ("b", "c")  # by score, and an item does not find itself


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"query": "q9", "ranked": []}', "'q9'"),
        ('{"query": "q1", "ranked": ["z"]}', "'z'"),
        ('{"query": "q1", "ranked": ["a", "a"]}', "'a'"),
        ('{"query": "q1", "ranked": ["a"], "scores": []}', "line 1"),
        ('{"query": "q1", "ranked": ["a"], "scores": [1e999]}', "line 1"),
        ('{"query": "q1"}', "`ranked`"),
        ('{"query": "q1", "ranked": []}\n{"query": "q1", "ranked": []}', "'q1'"),
        ("nonsense", "JSON"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text(line)
    with refuses(InputError, said, file="r.jsonl"):
        read_rankings(file, TASK)
