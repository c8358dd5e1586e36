"""Rerankers: query and candidates to scores. Extensions add more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from bakeoff_providers.adapter import Adapter
from bakeoff_providers.errors import StoreError
from bakeoff_providers.needs import Plugin
from bakeoff_providers.registry import Registry

from bakeoff.core.extensions import collect_entries
from bakeoff.core.facts import Fact
from bakeoff.embedding.cache import VectorCache


@dataclass(frozen=True, slots=True)
class Reranked:
    """Scores in the order of the candidates, higher is better; `tokens` if a server counted them."""

    scores: Sequence[float]
    tokens: int | None = None


class Reranker(Plugin, Adapter, ABC):
    """One model. `usd_per_million` and `usd_per_search` are what it charges; `paths` are options that are files."""

    name: ClassVar[str]
    default_model: ClassVar[str]
    local: ClassVar[bool] = False
    paths: ClassVar[tuple[str, ...]] = ()
    usd_per_million: float | None = 0.0
    usd_per_search: float | None = 0.0

    @property
    @abstractmethod
    def model(self) -> str:
        """The model's name, as it enters the cache key."""

    def identity(self) -> dict[str, str | int | float | bool | None]:
        """Everything besides query and document that changes a score; part of the cache key."""
        return {"reranker": self.name, "model": self.model}

    def load(self, *, offline: bool = False) -> None:
        """Load what the first call needs; raises Unavailable if that is impossible."""

    @abstractmethod
    def rank(self, query: str, documents: Sequence[str]) -> Reranked:
        """Score all candidates in one call."""

    def prepare(self, documents: Sequence[str], cache: VectorCache | None) -> Fact | None:  # noqa: ARG002 - most have nothing
        """Called once with all documents, for work ahead of the queries. Returns a note for the row."""
        return None

    def cost(self, tokens: float, searches: int) -> float | None:
        """Dollars; None if no price is known."""
        if self.usd_per_million is None or self.usd_per_search is None:
            return None
        return tokens * self.usd_per_million / 1e6 + searches * self.usd_per_search

    def close(self) -> None:
        """Release sessions and weights."""


def check_scores(answer: Reranked, documents: Sequence[str], name: str) -> Reranked:
    """One finite score per document, or StoreError."""
    with np.errstate(over="ignore"):
        scores = np.asarray(answer.scores, dtype=np.float32)
    if scores.shape != (len(documents),):
        raise StoreError(f"{name} returned {scores.size} scores for {len(documents)} documents")
    if not np.isfinite(scores).all():
        raise StoreError(f"{name} returned a score that is not a number")
    return Reranked([float(score) for score in scores], answer.tokens)


RERANKERS: Registry[Reranker] = Registry(
    "reranker",
    "bakeoff.rerankers",
    {
        "fake": "bakeoff.search.rerankers.fake:FakeReranker",
        "own": "bakeoff.search.rerankers.own:OwnReranker",
        **collect_entries("RERANKERS"),
    },
)
