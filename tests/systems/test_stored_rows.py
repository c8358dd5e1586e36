"""What results store of each row type: the keys that results of earlier versions have, and an entry that gives them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from bakeoff.embedding.chunking import ContenderChunking
from bakeoff.extensions.late_interaction.row import Tokens
from bakeoff.lineup.keys import table_of
from bakeoff.search.fusion import Fusion
from bakeoff.search.variants import Variant
from bakeoff.systems import SYSTEMS
from bakeoff.systems.base import System
from bakeoff.systems.dense import Dense
from bakeoff.systems.existing import ExistingRow
from bakeoff.systems.fused import Fused
from bakeoff.systems.given import GivenRow
from bakeoff.systems.hybrid import Hybrid
from bakeoff.systems.lexical import Lexical
from bakeoff.systems.reranked import Rerank, RerankedRow
from bakeoff.systems.retriever import RetrieverRow

NAMED = {"label": "row", "name": "row"}
PLAIN = {"variant": {"dimensions": None, "precision": "float32"}}
ROWS: list[tuple[System, dict[str, Any], str]] = [
    (Dense("row", "row", provider="fake", store="faiss"), {"provider": "fake", "store": "faiss"}, "contender"),
    (
        Hybrid("row", "row", provider="fake", store="qdrant", variant=Variant(64, "int8")),
        {"provider": "fake", "store": "qdrant", "variant": {"dimensions": 64, "precision": "int8"}, "search": "hybrid"},
        "contender",
    ),
    (
        Tokens("row", "row", provider="fake", store="exact", options={"size": 3}, store_options={"a": 1}),
        {"provider": "fake", "store": "exact", "options": {"size": 3}, "store_options": {"a": 1}, "vectors": "tokens"},
        "contender",
    ),
    (
        ExistingRow("row", "row", provider="fake", model="m", store="faiss", existing={"existing": "i.faiss"}),
        {"provider": "fake", "model": "m", "store": "faiss", "existing": {"existing": "i.faiss"}},
        "contender",
    ),
    (
        Lexical("row", "row", ranker="bm25", field="title", chunking=ContenderChunking(size=40)),
        {"ranker": "bm25", "field": "title", "chunking": {
            "strategy": "recursive", "size": 40, "overlap": 0, "unit": "words", "parents": "best", "top": 3,
            "label": "",
        }},
        "contender",
    ),
    (
        RetrieverRow("row", "row", retriever={"kind": "http", "url": "http://127.0.0.1/"}, live=len),
        {"retriever": {"kind": "http", "url": "http://127.0.0.1/"}},
        "contender",
    ),
    (GivenRow("row", "row", answers={"": "run.trec"}), {"answers": {"": "run.trec"}}, "contender"),
    (GivenRow("row", "row", live={"q": {"d": 1.0}}, unset="X is not set"), {}, "contender"),
    (
        Fused("row", "row", fusion=Fusion(("a", "b"), (1.0, 2.0))),
        {"fusion": {"of": ["a", "b"], "weights": [1.0, 2.0], "c": 60.0, "top_n": None, "method": "rrf"}},
        "fusion",
    ),
    (
        RerankedRow("row", "row", rerank=Rerank("a", "fake"), field="title"),
        {"rerank": {"of": "a", "provider": "fake", "model": "", "depth": 50, "options": {}}, "field": "title"},
        "rerank",
    ),
]  # fmt: skip


def test_every_row_type_is_here() -> None:
    assert {row.row_type for row, _, _ in ROWS} == set(SYSTEMS.builtin)


@pytest.mark.parametrize(("row", "stored", "table"), ROWS, ids=[row.row_type for row, _, _ in ROWS])
def test_a_row_is_stored_by_the_keys_that_apply(row: System, stored: dict[str, Any], table: str) -> None:
    assert msgspec.json.decode(msgspec.json.encode(row.to_dict())) == NAMED | PLAIN | stored
    assert table_of(row.to_dict())[0] == table
    assert row.names >= {"row"}


def test_a_row_has_only_the_fields_of_its_type() -> None:
    with pytest.raises(TypeError):
        Lexical("row", ranker="bm25", store="faiss")  # type: ignore[call-arg]
