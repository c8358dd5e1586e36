"""A corpus that stays on disk gives the figures that the same corpus gives in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from bakeoff.core import corpus
from bakeoff.core.corpus import StoredDocuments
from bakeoff.embedding import vector_rows
from bakeoff.lineup.lineup import Lineup
from bakeoff.results.summary import detail, summarise
from bakeoff.running import engines
from bakeoff.running.runner import Outcome, run
from bakeoff.running.settings import Settings
from bakeoff.search.stores import base

from tests.running.beir_task import beir_task

LINEUP = """
name = "streamed"
task = { format = "beir", folder = "task", chunking = { chunk_strategy = "fixed", max_chunk_size = 12 } }
rounds = 1
depth = 20
measures = ["ndcg@10", "recall@20"]

[[contender]]
provider = "fake"
store = ["faiss", { name = "faiss", label = "codes", options = { index = "SQ8" } }]
dimensions = [256, 192]
precision = ["float32", "int8", "binary"]

[[contender]]
ranker = "bm25"

[[contender]]
provider = "tfidf"
store = "faiss"
"""


@pytest.mark.slow
@pytest.mark.parametrize("cached", [True, False])
def test_figures_do_not_depend_on_where_the_corpus_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cached: bool
) -> None:
    beir_task(tmp_path / "task")
    (tmp_path / "lineup.toml").write_text(LINEUP)

    def outcome(name: str) -> Outcome:
        return run(Lineup.read(tmp_path / "lineup.toml"), Settings(cache=tmp_path / name if cached else None))

    kept = outcome("a")
    monkeypatch.setattr(corpus, "IN_MEMORY", 0)
    monkeypatch.setattr(vector_rows, "KEPT_BYTES", 0)
    for module in (vector_rows, engines, base):
        monkeypatch.setattr(module, "BLOCK", 64)
    streamed = outcome("b")
    assert isinstance(streamed.task.documents, StoredDocuments)
    assert not streamed.not_run
    assert [row.contender.label for row in streamed.ran] == [row.contender.label for row in kept.ran]
    assert streamed.task.fingerprint() == kept.task.fingerprint()
    for one, two in zip(kept.ran, streamed.ran, strict=True):
        assert {query: ranking.ids for query, ranking in one.rankings.items()} == {
            query: ranking.ids for query, ranking in two.rankings.items()
        }, one.contender.label
        assert (one.search is None) == (two.search is None)
        if one.search and two.search:
            assert one.search.loss == two.search.loss
            assert one.search.build.index_bytes == two.search.build.index_bytes
            if one.search.embedding and two.search.embedding:
                for role, usage in one.search.embedding.usage.items():
                    other = two.search.embedding.usage[role]
                    assert (usage.asked, usage.cached, usage.tokens) == (other.asked, other.cached, other.tokens)
                assert one.search.embedding.lengths == two.search.embedding.lengths
    assert detail(streamed).titles == detail(kept).titles
    assert [row.measures for row in summarise(streamed).rows] == [row.measures for row in summarise(kept).rows]
