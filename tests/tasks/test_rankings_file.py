"""Rankings that someone else made, for any kind of task."""

from __future__ import annotations

from pathlib import Path

import pytest
from bakeoff.core.task import Document, Query, Task
from bakeoff.tasks.rankings_file import read_rankings
from bakeoff_providers.errors import InputError

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
        ('{"query": "q9", "ranked": []}', "line 1: unknown query 'q9'"),
        ('{"query": "q1", "ranked": ["z"]}', "line 1: unknown document 'z'"),
        ('{"query": "q1", "ranked": ["a", "a"]}', "'a' appears twice"),
        ('{"query": "q1", "ranked": ["a"], "scores": []}', "0 scores for 1 ids"),
        ('{"query": "q1", "ranked": ["a"], "scores": [1e999]}', "line 1"),
        ('{"query": "q1"}', "missing required field `ranked`"),
        ('{"query": "q1", "ranked": []}\n{"query": "q1", "ranked": []}', "line 2: duplicate query 'q1'"),
        ("nonsense", "line 1: JSON is malformed"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text(line)
    with pytest.raises(InputError, match=said):
        read_rankings(file, TASK)
