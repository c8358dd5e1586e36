"""BM25 as bm25s publishes it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.runner import run
from bakeoff.search.rankers.bm25 import BM25
from bakeoff_providers.errors import InputError


def test_words_are_cut_to_their_stems_and_stop_words_count_for_nothing() -> None:
    ranker = BM25()
    ranker.add(["a", "b"], ["the boats were sailing", "a forest trail"])
    assert ranker.search("a boat that sails", 2).ids == ["a"]
    assert ranker.search("the", 2).ids == []


def test_other_languages_and_none() -> None:
    german = BM25(language="german")
    german.add(["a", "b"], ["die Häuser am See", "der Wald"])
    assert german.search("ein Haus", 2).ids == ["a"]
    assert german.search("der die am", 2).ids == []
    plain = BM25(language="none")
    plain.add(["a", "b"], ["the boats", "a trail"])
    assert plain.search("boat", 2).ids == []
    assert plain.search("the", 2).ids == ["a"]
    with pytest.raises(InputError, match="no stemmer for 'englsh'") as caught:
        BM25(language="englsh")
    assert "english" in caught.value.remedy


@pytest.mark.calibration
@pytest.mark.skipif("BAKEOFF_DATA" not in os.environ, reason="BAKEOFF_DATA is not set")
def test_scifact_lands_on_the_published_figure(tmp_path: Path) -> None:
    folder = Path(os.environ["BAKEOFF_DATA"]) / "scifact"
    (tmp_path / "scifact.toml").write_text(
        f'rounds = 1\ntask = {{ format = "beir", folder = "{folder}" }}\n[[contender]]\nranker = "bm25"\n'
    )
    outcome = run(Lineup.read(tmp_path / "scifact.toml"))
    assert (len(outcome.task.documents), len(outcome.task.queries)) == (5183, 300)
    assert np.mean(outcome.scores["bm25"]["ndcg@10"]) == pytest.approx(0.687, abs=0.01)
