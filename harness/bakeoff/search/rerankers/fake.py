"""A deterministic reranker by word overlap, without model or network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from bakeoff_providers.shared_options import Label

from bakeoff.search.rerankers import Reranked, Reranker


class FakeReranker(Reranker):
    """The share of the query's words that a document has."""

    name: ClassVar[str] = "fake"
    default_model: ClassVar[str] = "overlap"
    local: ClassVar[bool] = True

    def __init__(self, *, model: Label = None) -> None:
        self._model = model or self.default_model

    @property
    def model(self) -> str:
        """Its name."""
        return self._model

    def rank(self, query: str, documents: Sequence[str]) -> Reranked:
        """Between 0 and 1."""
        wanted = set(re.findall(r"\w+", query.lower()))
        held = [set(re.findall(r"\w+", document.lower())) for document in documents]
        return Reranked([len(wanted & words) / max(1, len(wanted)) for words in held])
