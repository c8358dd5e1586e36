"""Embeddings objects of other libraries, made by these libraries: asked as they are, with the role that each knows."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import bakeoff
import numpy as np
import pytest
from bakeoff_providers.base import Role
from bakeoff_providers.own import Own

from tests.providers.tiny_bert import write_tiny_model

CORPUS = {"1": "copper mine", "2": "sailing lake", "3": "forest trail"}
QUERIES = {"q1": "copper mine", "q2": "sailing lake"}
QRELS = {"q1": {"1": 1}, "q2": {"2": 1}}


def _evaluated(value: Any) -> Any:
    """The row of this object beside BM25, on queries that are the documents' own texts."""
    task = {"corpus": CORPUS, "queries": QUERIES, "qrels": QRELS}
    result = bakeoff.evaluate({"theirs": value, "bm25": "bm25"}, task=task, measures=["mrr"], rounds=1, cache=False)
    return {row["contender"]: row for row in result.result.matrix()}["theirs"]


def test_langchain() -> None:
    embeddings: Any = import_module("langchain_core.embeddings")
    theirs = embeddings.DeterministicFakeEmbedding(size=8)
    provider = Own(target=theirs)
    for role in Role:  # the same text has the same vector in both roles, so a query finds its text
        np.testing.assert_allclose(provider.embed(["lake"], role).vectors, [theirs.embed_query("lake")], rtol=1e-6)
    row = _evaluated(theirs)
    assert (row["mrr"], row["dimensions"], row["not_run"]) == (1.0, 8, None)

    class Twofold(embeddings.Embeddings):  # type: ignore[misc]
        """As its base wants it: documents in one call, queries one by one."""

        asked: ClassVar[list[int]] = []

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            self.asked.append(len(texts))
            return [[1.0, len(text)] for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return [2.0, len(text)]

    both = Own(target=Twofold())
    assert both.embed(["ab", "c"], Role.DOCUMENT).vectors.tolist() == [[1, 2], [1, 1]]
    assert both.embed(["ab", "c"], Role.QUERY).vectors.tolist() == [[2, 2], [2, 1]]
    assert Twofold.asked == [2]


def test_llama_index() -> None:
    base: Any = pytest.importorskip("llama_index.core.embeddings").BaseEmbedding

    class Twofold(base):  # type: ignore[misc]
        """The library makes the public methods of these."""

        def _get_text_embedding(self, text: str) -> list[float]:
            return [1.0, *_counts(text)]

        def _get_query_embedding(self, query: str) -> list[float]:
            return [0.5, *_counts(query)]

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

    provider = Own(target=Twofold())
    assert provider.embed(["lake", "mine mine"], Role.DOCUMENT).vectors.tolist() == [[1, 0, 1, 0], [1, 2, 0, 0]]
    assert provider.embed(["lake"], Role.QUERY).vectors.tolist() == [[0.5, 0, 1, 0]]
    row = _evaluated(Twofold())
    assert (row["mrr"], row["dimensions"], row["not_run"]) == (1.0, 4, None)


def _counts(text: str) -> list[float]:
    return [text.count(word) for word in ("mine", "lake", "forest")]


def test_sentence_transformers(tmp_path: Path) -> None:
    library: Any = pytest.importorskip("sentence_transformers")
    prompts = {"query": "ask : ", "document": "", "clusters": "lake : "}
    words = ["copper", "mine", "sailing", "lake", "forest", "trail", "ask", ":"]
    theirs = library.SentenceTransformer(str(write_tiny_model(tmp_path, words, prompts)), device="cpu")
    provider = Own(target=theirs)
    expected = theirs.encode(["copper mine"], show_progress_bar=False)
    np.testing.assert_allclose(provider.embed(["copper mine"], Role.DOCUMENT).vectors, expected, atol=1e-6)
    asked = theirs.encode(["ask : copper mine"], show_progress_bar=False)  # its prompt for queries
    np.testing.assert_allclose(provider.embed(["copper mine"], Role.QUERY).vectors, asked, atol=1e-6)
    grouped = Own(target=theirs, query_prompt={"name": "clusters"})
    other = theirs.encode(["lake : copper mine"], show_progress_bar=False)
    np.testing.assert_allclose(grouped.embed(["copper mine"], Role.QUERY).vectors, other, atol=1e-6)
    row = _evaluated(theirs)
    assert (row["dimensions"], row["not_run"]) == (8, None)
