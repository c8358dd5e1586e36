"""The dry run: what it counts, and that it does not hold the corpus to count it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bakeoff.core import corpus
from bakeoff.lineup.lineup import Lineup
from bakeoff.running import plan as planning
from bakeoff.running.runner import run
from bakeoff.running.settings import Settings

TEXTS = ["alpha beta", "gamma", "alpha beta", "delta", "gamma", "epsilon", "zeta eta theta"]  # five distinct


def _lineup(folder: Path) -> Lineup:
    documents = [{"_id": f"d{number}", "title": "", "text": text} for number, text in enumerate(TEXTS)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    (folder / "queries.jsonl").write_text('{"_id": "q0", "text": "alpha"}\n{"_id": "q1", "text": "delta"}\n')
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td0\t1\nq1\td3\t1\n")
    entry = 'rounds = 1\ntask = { format = "beir", folder = "." }\n[[contender]]\nprovider = "fake"\nstore = "faiss"\n'
    (folder / "lineup.toml").write_text(entry)
    return Lineup.read(folder / "lineup.toml")


@pytest.mark.parametrize("in_memory", [0, 1 << 20])
def test_blocks_count_each_distinct_text_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int) -> None:
    monkeypatch.setattr(corpus, "IN_MEMORY", in_memory)
    monkeypatch.setattr(planning, "BLOCK", 2)
    lineup, settings = _lineup(tmp_path), Settings(cache=tmp_path / "vectors")
    (before,) = planning.plan(lineup, settings)
    assert (before.texts, before.cached) == (7, 0)  # five documents, two queries
    run(lineup, settings)
    (after,) = planning.plan(lineup, settings)
    assert (after.texts, after.cached) == (7, 5)  # a local provider is asked for queries each time
