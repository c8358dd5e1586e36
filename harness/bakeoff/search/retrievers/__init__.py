"""Retrievers: rankings from a function or an endpoint. Other packages add theirs by `bakeoff.retrievers`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence, Sized
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal

from bakeoff_providers.errors import StoreError
from bakeoff_providers.needs import Plugin
from bakeoff_providers.registry import Registry

from bakeoff.core.extensions import collect_entries

Scored = Sequence[tuple[str, float]]
Unknown = Annotated[Literal["error", "drop"], "how to treat ids that are not in the task"]


class Retriever(Plugin, ABC):
    """An external search system. The harness validates its answers."""

    name: ClassVar[str]
    paths: ClassVar[tuple[str, ...]] = ()  # options that are files, relative to the line-up
    takes_policy: ClassVar[bool] = False  # it retries by itself, under the run's policy

    @classmethod
    def check(cls, **options: Any) -> None:
        """Raise InputError for invalid options, without a request."""

    @abstractmethod
    def search(self, text: str, k: int) -> tuple[Scored, int]:
        """The k best for a text, and the nanoseconds of the successful call."""

    def close(self) -> None:
        """Close connections."""


def pair_scores(answer: Any, k: int) -> list[tuple[str, float]]:
    """Pairs of id and score from pairs, a dict, or ids in ranked order. An iterator may be endless: k are read."""
    if isinstance(answer, Mapping):
        answer = list(answer.items())
    if isinstance(answer, (str, bytes)) or not isinstance(answer, Iterable):
        raise StoreError(f"it returned {type(answer).__name__}, not a list of ids or of (id, score)")
    entries = list(answer if isinstance(answer, Sized) else islice(answer, k))
    if all(isinstance(entry, (str, int)) for entry in entries):
        return [(str(entry), 1.0 / rank) for rank, entry in enumerate(entries, start=1)]
    try:
        return [(str(document), float(score)) for document, score in entries]
    except (TypeError, ValueError):
        raise StoreError("it returned neither ids nor pairs of (id, score)") from None


RETRIEVERS: Registry[Retriever] = Registry(
    "retriever",
    "bakeoff.retrievers",
    {
        "function": "bakeoff.search.retrievers.function:Function",
        **collect_entries("RETRIEVERS"),
    },
    given=("target", "policy"),
)
