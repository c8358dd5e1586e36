"""Rerankers: query and candidates to scores. Extensions add more."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from bakeoff_providers.base import Adapter
from bakeoff_providers.code import code_identity, load_from_file
from bakeoff_providers.errors import InputError, StoreError
from bakeoff_providers.needs import Plugin
from bakeoff_providers.registry import Registry
from bakeoff_providers.shared_options import File, FunctionName, Label

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
        "fake": "bakeoff.search.rerankers:FakeReranker",
        "own": "bakeoff.search.rerankers:OwnReranker",
        **collect_entries("RERANKERS"),
    },
)


class OwnReranker(Reranker):
    """Written as `provider = "file:mine.py:rerank"`. Scores are cached under a revision or a hash of the file."""

    name: ClassVar[str] = "own"
    default_model: ClassVar[str] = ""
    local: ClassVar[bool] = True
    paths: ClassVar[tuple[str, ...]] = ("file",)

    def __init__(
        self,
        *,
        file: File = "",
        function: FunctionName = "",
        model: Label = None,
        revision: Annotated[str | None, "version for cached scores; default: a hash of the file"] = None,
    ) -> None:
        if not file or not function:
            raise InputError("names no function", remedy='provider = "file:mine.py:rerank"')
        self._code, self._revision, self._model = load_from_file(file, function), revision, model or function

    @property
    def model(self) -> str:
        """The function's name."""
        return self._model

    def code(self) -> dict[str, str] | None:
        """A declared revision, or a hash of the file."""
        return {"revision": self._revision} if self._revision else code_identity(self._code)

    def rank(self, query: str, documents: Sequence[str]) -> Reranked:
        """One call."""
        answer: Any = self._code(query, list(documents))
        try:
            return Reranked([float(score) for score in answer])
        except (TypeError, ValueError):
            raise StoreError(f"{self.model} did not return a list of scores") from None


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
