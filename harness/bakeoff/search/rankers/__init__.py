"""Lexical rankers, the baseline that every embedding must beat."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from bakeoff_providers.needs import Plugin
from bakeoff_providers.registry import Registry

from bakeoff.search.hits import Hits


class Ranker(Plugin, ABC):
    """Ranks texts by their words, over the same chunks as embedding rows."""

    name: ClassVar[str]

    @abstractmethod
    def add(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Indexes the texts."""

    @abstractmethod
    def search(self, text: str, k: int) -> Hits:
        """The k best matches. The harness appends what does not match."""


RANKERS: Registry[Ranker] = Registry("ranker", "bakeoff.rankers", {"bm25": "bakeoff.search.rankers.bm25:BM25"})
