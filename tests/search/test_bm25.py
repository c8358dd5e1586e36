"""BM25 as bm25s publishes it."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import bm25s
import numpy as np
import pytest
import Stemmer
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query
from bakeoff.embedding.chunking import Chunk
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.runner import run
from bakeoff.search import rankers as bm25
from bakeoff.search.fusion import fuse_by_rrf
from bakeoff.search.index import Index
from bakeoff.search.rankers import BM25
from bakeoff.systems.lexical import LexicalSearcher
from bakeoff_providers.errors import InputError

from tests.errors import refuses


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
    with refuses(InputError, "'englsh'", place="language") as caught:
        BM25(language="englsh")
    assert "english" in caught.value.remedy


class Watched(Sequence[str]):
    """Texts that are made when they are read; it knows how many were alive at once."""

    def __init__(self, total: int) -> None:
        self.total, self.most = total, 0
        self._alive: weakref.WeakSet[_Text] = weakref.WeakSet()

    def __len__(self) -> int:
        return self.total

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(self.total))]
        text = _Text(f"boat number {place} sailed past harbour {place % 7}" * (place % 5))
        self._alive.add(text)
        self.most = max(self.most, len(self._alive))
        return text

    def __iter__(self) -> Iterator[str]:
        return (self[number] for number in range(self.total))


class _Text(str):
    """One that can be watched."""


@pytest.mark.parametrize("language", ["english", "none"])
def test_texts_are_read_in_blocks_and_score_as_all_at_once(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25, "_BLOCK", 10)
    texts, ranker = Watched(95), BM25(language=language)
    ranker.add([str(number) for number in range(95)], texts)
    assert texts.most <= 20  # the block, and the one that takes its place
    stemmer = Stemmer.Stemmer("english") if language == "english" else None
    stopwords = "english" if language == "english" else None

    def words(texts: list[str]) -> Any:
        return bm25s.tokenize(texts, stopwords=stopwords, stemmer=stemmer, return_ids=False, show_progress=False)

    whole = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    whole.index(words(texts[:]), show_progress=False)
    for query in ("boats in harbour 3", "number 17", "the zebra"):
        expected = {str(at): score for at, score in enumerate(whole.get_scores(words([query])[0])) if score > 0}
        hits = ranker.search(query, 95)
        assert dict(zip(hits.ids, hits.scores, strict=True)) == expected


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
    fused = fuse_by_rrf([words, vectors], [1, 1], c=1)
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
