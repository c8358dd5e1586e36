"""BM25 as bm25s publishes it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query
from bakeoff.embedding.chunking import Chunk
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.runner import run
from bakeoff.search.fusion import weighted_rrf
from bakeoff.search.index import Index
from bakeoff.search.rankers.bm25 import BM25
from bakeoff.search.searchers import LexicalSearcher
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


def _searcher(depth: int = 10, metadata: dict[str, dict[str, str]] | None = None) -> LexicalSearcher:
    chunks = [Chunk(id=name, document=name, text=text) for name, text in TEXTS.items()]
    ranker = BM25()
    ranker.add(list(TEXTS), list(TEXTS.values()))
    return LexicalSearcher(ranker, Index(chunks, depth, TEXTS, metadata or {}))


TEXTS = {"c": "a forest trail", "a": "an old mill", "d": "the boats were sailing", "b": "a stone"}


def test_what_matches_nothing_follows_by_id_with_score_0() -> None:
    ranking = _searcher().ask(Query(id="q", text="a boat")).ranking
    assert ranking.ids == ("d", "a", "b", "c")
    assert ranking.scores[0] > 0
    assert ranking.scores[1:] == (0, 0, 0)
    assert ranking.found == ("d",)
    assert _searcher(depth=3).ask(Query(id="q", text="a boat")).ranking.ids == ("d", "a", "b")
    nothing = _searcher().ask(Query(id="q", text="zebra")).ranking
    assert (nothing.ids, nothing.found) == (("a", "b", "c", "d"), ())


def test_the_rest_keeps_to_the_filter_and_leaves_out_the_item_that_asks() -> None:
    kinds = {name: {"kind": "x" if name in "ad" else "y"} for name in TEXTS}
    searcher = _searcher(metadata=kinds)
    assert searcher.ask(Query(id="q", text="a boat", where={"kind": "y"})).ranking.ids == ("b", "c")
    assert searcher.ask(Query(id="q", text="", item="b")).ranking.ids == ("a", "c", "d")


def test_a_fusion_does_not_count_the_order_by_id() -> None:
    words = _searcher().ask(Query(id="q", text="a boat")).ranking
    vectors = Ranking(("c", "d"), (0.9, 0.8))
    fused = weighted_rrf([words, vectors], [1, 1], c=1)
    assert fused.ids == ("d", "c")  # 1/2 + 1/3 against 1/2; a and b are in neither
    assert fused.scores == pytest.approx((5 / 6, 1 / 2))


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
