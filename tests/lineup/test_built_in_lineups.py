"""The built-in line-ups that no other test runs: their rows run here, and say what they are there to say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bakeoff.core.paths import lineup_file
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.runner import run

from tests.commands.test_wrong_arguments import bakeoff
from tests.providers.real_weights import require


def test_the_same_vectors_in_several_stores() -> None:
    """All rows share minilm's vectors, and 25 documents are few: what a store returns is close to exact search.

    The stores that start quickest; the conformance suite has all of them.
    """
    require("minilm")
    quick = ["faiss", "sqlite_vec", "usearch", "hnswlib"]
    outcome = run(replace(Lineup.read(lineup_file(Path("stores"))).narrowed((), quick), rounds=1))
    assert outcome.not_run == []
    exact, *others = outcome.ran
    assert exact.contender.label == "minilm+faiss"
    assert {row.contender.store for row in others} == set(quick)
    for row in others:
        mean = np.mean(outcome.scores[row.contender.label]["ndcg@10"])
        assert mean == pytest.approx(np.mean(outcome.scores["minilm+faiss"]["ndcg@10"]), abs=0.03), row.contender.label


def test_questions_in_other_languages_have_a_table_by_language(tmp_path: Path) -> None:
    code, out, err = bakeoff(tmp_path, "run", "multilingual", "--contender", "bm25", "--rounds", "1", "--no-charts")
    assert code == 0, err
    assert out.splitlines()[1].startswith("Search across languages: ")
    (result,) = (tmp_path / "results").iterdir()
    page = (result / "evaluation_report.html").read_text(encoding="utf-8")
    assert all(f'<option value="{language}">' in page for language in ("German", "Spanish"))
