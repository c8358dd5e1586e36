"""What a retriever promises: a text in, ids with scores out, and the time that the answer took."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from bakeoff_providers.errors import StoreError

Scored = Sequence[tuple[str, float]]
Unknown = Annotated[Literal["error", "drop"], "what happens to ids that are no documents of the task"]


class Retriever(ABC):
    """One system that ranks by itself. What it answers is checked here, not there."""

    name: ClassVar[str]
    paths: ClassVar[tuple[str, ...]] = ()  # options that are files, relative to the line-up

    @classmethod
    def missing(cls, **options: Any) -> str | None:  # noqa: ARG003 - some need to know what the line-up says
        """What keeps it from being asked, in words; makes no call."""
        return None

    @classmethod  # noqa: B027 - some can't be wrong
    def check(cls, **options: Any) -> None:
        """Raises InputError for options that can't be right, without asking anything."""

    @abstractmethod
    def search(self, text: str, k: int) -> tuple[Scored, int]:
        """The best k for a text, and the nanoseconds of the call that answered."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Lets go of connections."""


def scored(answer: Any) -> list[tuple[str, float]]:
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
