"""Every source of rows: the type of its rows can be made ready, and the message about a contender names them all."""

from __future__ import annotations

import pytest
from bakeoff.lineup.contender import Contender, Rerank
from bakeoff.lineup.entries import ContenderEntry
from bakeoff.lineup.sources import SOURCES, contenders_of, missing_of, row_type_of
from bakeoff.running.preparers import PREPARERS
from bakeoff.search.fusion import Fusion
from bakeoff_providers.errors import InputError

ROWS = {
    "dense": Contender("row", provider="fake", store="faiss"),
    "tokens": Contender("row", provider="fake", store="exact", vectors="tokens"),
    "existing": Contender("row", provider="fake", store="faiss", existing={"existing": "index.faiss"}),
    "lexical": Contender("row", ranker="bm25"),
    "retriever": Contender("row", retriever={"kind": "http", "url": "http://127.0.0.1/"}),
    "given": Contender("row", answers={"": "run.trec"}),
    "fused": Contender("row", fusion=Fusion(("a", "b"), (1.0, 1.0))),
    "reranked": Contender("row", rerank=Rerank("a", "fake")),
}


@pytest.mark.parametrize("row_type", PREPARERS.builtin)
def test_every_type_of_row_has_a_source(row_type: str) -> None:
    assert row_type_of(ROWS[row_type]) == row_type
    assert missing_of(ROWS[row_type]) is None


def test_rankings_from_python_are_given() -> None:
    assert row_type_of(Contender("row", live={"q": {"d": 1.0}})) == "given"


def test_a_contender_without_a_source_is_told_all_of_them() -> None:
    with pytest.raises(InputError, match="name one of") as raised:
        contenders_of(ContenderEntry())
    assert all(key in raised.value.problem for key in SOURCES)
