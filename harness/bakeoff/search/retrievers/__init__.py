"""Rankings that are asked for elsewhere. A new one is a file here and a line below (others: `bakeoff.retrievers`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from bakeoff_providers.errors import StoreError
from bakeoff_providers.needs import Plugin
from bakeoff_providers.registry import Registry

Scored = Sequence[tuple[str, float]]
Unknown = Annotated[Literal["error", "drop"], "what happens to ids that are no documents of the task"]


class Retriever(Plugin, ABC):
    """One system that ranks by itself. What it answers is checked here, not there."""

    name: ClassVar[str]
    paths: ClassVar[tuple[str, ...]] = ()  # options that are files, relative to the line-up
    takes_policy: ClassVar[bool] = False  # it tries again by itself, as the run's policy says

    @classmethod
    def check(cls, **options: Any) -> None:
        """Raises InputError for options that can't be right, without asking anything."""

    @abstractmethod
    def search(self, text: str, k: int) -> tuple[Scored, int]:
        """The best k for a text, and the nanoseconds of the call that answered."""

    def close(self) -> None:
        """Lets go of connections."""


def pair_scores(answer: Any) -> list[tuple[str, float]]:
    """Pairs of id and score from pairs, from a dict, or from ids alone, whose order is then the ranking."""
    if isinstance(answer, Mapping):
        answer = list(answer.items())
    if isinstance(answer, (str, bytes)) or not isinstance(answer, Iterable):
        raise StoreError(f"it answered {type(answer).__name__}, not a list of ids or of (id, score)")
    entries = list(answer)
    if all(isinstance(entry, (str, int)) for entry in entries):
        return [(str(entry), 1.0 / rank) for rank, entry in enumerate(entries, start=1)]
    try:
        return [(str(document), float(score)) for document, score in entries]
    except (TypeError, ValueError):
        raise StoreError("it answered neither ids nor pairs of (id, score)") from None


RETRIEVERS: Registry[Retriever] = Registry(
    "retriever",
    "bakeoff.retrievers",
    {
        "function": "bakeoff.search.retrievers.function:Function",
        "http": "bakeoff.search.retrievers.http:Http",
    },
    given=("target", "policy"),
)
