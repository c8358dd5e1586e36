"""What the documentation shows must work when it is typed in."""

from __future__ import annotations

import re
from pathlib import Path

from bakeoff.lineup.lineup import Lineup
from bakeoff.run.runner import run
from bakeoff.tasks.load import load_task

DOCS = Path(__file__).parent.parent / "docs"


def test_the_example_of_an_own_task_works(tmp_path: Path) -> None:
    text = (DOCS / "tasks.md").read_text(encoding="utf-8")
    files = re.findall(r"^`([\w.]+)`:\n\n```\w*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert [name for name, _ in files] == ["documents.csv", "queries.jsonl", "judgments.csv", "shop.toml"]
    for name, content in files:
        (tmp_path / name).write_text(content, encoding="utf-8")
    lineup = Lineup.read(tmp_path / "shop.toml")
    assert f"fingerprint {load_task(lineup.task, tmp_path).fingerprint()}\n" in text
    outcome = run(lineup)
    assert outcome.task.judgments == {"q1": {"17": 3, "18": 1, "19": 0}, "q2": {"19": 3, "17": 1}}
    assert outcome.scores["bm25"]["p@1"] == [1.0, 0.0]  # "reading" is in one document, "write letters" in none
