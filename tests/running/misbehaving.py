"""Adapters that do what none should: each way by the name of its option."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from bakeoff.core.filters import Condition, Metadata
from bakeoff.search.hits import Hits
from bakeoff.search.rankers import Ranker
from bakeoff.search.stores.base import Capabilities, SizeModel, Store
from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role, Vectors
from bakeoff_providers.errors import InputError


class LibraryError(Exception):
    """What a client library raises of its own."""


class PanicException(BaseException):
    """What libraries in Rust raise when they give up: no Exception."""


ANSWERS = {
    "unknown": Hits(["nobody"], [0.5]),
    "duplicate": Hits(["1", "1"], [0.5, 0.4]),
    "nan": Hits(["1"], [float("nan")]),
    "lengths": Hits(["1", "2"], [0.5]),
}


def answer(how: str) -> Hits:
    """The wrong answer of this name, or an exception."""
    if how == "raises":
        raise LibraryError("the connection was lost")
    if how == "panics":
        raise PanicException("called `Option::unwrap()` on a `None` value")
    if how == "input":
        raise InputError("unfathomable")
    return ANSWERS[how]


class BadStore(Store):
    """Works until it is searched, or fails while it is built."""

    name = "bad"
    capabilities = Capabilities(exact=True, filters=True, persistent=False, updates=True, in_process=True)

    def __init__(self, *, dimensions: int, folder: Path, how: str = "raises") -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        if how == "option":
            raise InputError("how can't be 'option'", place="how")
        self.how, self.searches, self.added = how, 0, 0

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        if self.how == "add":
            raise LibraryError("no room is left")
        self.added += len(ids)

    def _delete(self, ids: list[str]) -> None:
        """Holds nothing."""

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        self.searches += 1
        if self.how == "late":  # after the warm-up, in the middle of the rounds
            return answer("unknown") if self.searches > 5 else Hits(["1"], [0.5])
        return answer(self.how)

    def count(self) -> int:
        """As if it had kept them."""
        return self.added

    def size_model(self) -> SizeModel:
        """Nothing is kept."""
        return SizeModel(0, 0, "0")


class BadRanker(Ranker):
    """Works until it is searched."""

    name = "bad"

    def __init__(self, *, how: str = "raises") -> None:
        self.how = how

    def add(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Keeps nothing."""

    def search(self, text: str, k: int) -> Hits:
        """The wrong answer."""
        return answer(self.how)


class BadProvider(Provider):
    """Answers vectors that can't be used, or raises."""

    name: ClassVar[str] = "bad"
    default_model: ClassVar[str] = "bad"
    local: ClassVar[bool] = True

    def __init__(self, *, model: str | None = None, how: str = "raises") -> None:
        if how == "created":
            raise LibraryError("the driver is too old")
        self.how, self.card = how, ModelCard(name=model or "bad", dimensions=2, batch_items=100)

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        """Vectors of two dimensions, or something else."""
        if self.how in ("raises", "input") or (self.how == "query" and role is Role.QUERY):
            answer("raises" if self.how == "query" else self.how)
        vectors = np.ones((len(texts) - (self.how == "few"), 2), dtype=np.float32)
        if self.how == "nan":
            vectors[0, 0] = np.nan
        return EmbeddingBatch(vectors)
