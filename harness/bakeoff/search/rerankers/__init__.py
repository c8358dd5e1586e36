"""A second stage: query + candidates → a new order. A new one is a file here and a line below."""

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

from bakeoff.core.facts import Fact
from bakeoff.embedding.cache import VectorCache


@dataclass(frozen=True, slots=True)
class Reranked:
    """Scores in the order of the candidates, higher is better; `tokens` where a server counted them."""

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
        """All that changes a score besides query and document: the cache key is made of this."""
        return {"reranker": self.name, "model": self.model}

    def load(self, *, offline: bool = False) -> None:
        """Fetches and loads what the first call would; Unavailable where that can't be had."""

    @abstractmethod
    def rank(self, query: str, documents: Sequence[str]) -> Reranked:
        """One call for all candidates."""

    def prepare(self, documents: Sequence[str], cache: VectorCache | None) -> Fact | None:  # noqa: ARG002 - most have nothing
        """Called once with every document's text: what can be made ahead of the queries. Returns a note to the row."""
        return None

    def cost(self, tokens: float, searches: int) -> float | None:
        """Dollars; None where no price is known."""
        if self.usd_per_million is None or self.usd_per_search is None:
            return None
        return tokens * self.usd_per_million / 1e6 + searches * self.usd_per_search

    def close(self) -> None:
        """Lets go of sessions and weights."""


def checked(answer: Reranked, documents: Sequence[str], name: str) -> Reranked:
    """The promise, enforced in one place."""
    with np.errstate(over="ignore"):
        scores = np.asarray(answer.scores, dtype=np.float32)
    if scores.shape != (len(documents),):
        raise StoreError(f"{name} answered {scores.size} scores for {len(documents)} documents")
    if not np.isfinite(scores).all():
        raise StoreError(f"{name} answered a score that is no number")
    return Reranked([float(score) for score in scores], answer.tokens)


RERANKERS: Registry[Reranker] = Registry(
    "reranker",
    "bakeoff.rerankers",
    {
        "fake": "bakeoff.search.rerankers.fake:Fake",
        "own": "bakeoff.search.rerankers.own:Own",
        "maxsim": "bakeoff.search.rerankers.maxsim:MaxSim",
        "cross_encoder": "bakeoff.search.rerankers.cross_encoder:CrossEncoder",
        "cohere": "bakeoff.search.rerankers.hosted:CohereReranker",
        "voyage": "bakeoff.search.rerankers.hosted:VoyageReranker",
    },
)
