"""Retrievers: rankings from a function or an endpoint. Other packages add theirs by `bakeoff.retrievers`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal

from bakeoff_providers.code import load_from_file
from bakeoff_providers.errors import InputError, StoreError
from bakeoff_providers.keys import fill_in, missing_variables
from bakeoff_providers.needs import Plugin
from bakeoff_providers.registry import Registry
from bakeoff_providers.shared_options import File, FunctionName

from bakeoff.core.clock import time_call
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
        "function": "bakeoff.search.retrievers:Function",
        **collect_entries("RETRIEVERS"),
    },
    given=("target", "policy"),
)


class Function(Retriever):
    """Returns ids, best first, or pairs of (id, score) in any order. A class is created once."""

    name: ClassVar[str] = "function"
    paths: ClassVar[tuple[str, ...]] = ("file",)

    def __init__(
        self,
        *,
        file: File = "",
        function: FunctionName = "",
        target: Any = None,
        unknown: Unknown = "error",
        **options: Annotated[Any, "any other option is passed to the class; ${NAME} comes from the environment"],
    ) -> None:
        self.unknown = unknown
        code = load_from_file(file, function) if target is None else target
        if isinstance(code, type):
            code = code(**fill_in(options))
        elif options:
            raise InputError(f"the function {function!r} takes no option {next(iter(options))!r}", place="retriever")
        self._search: Callable[[str, int], Any] = getattr(code, "search", code)

    @classmethod
    def missing(cls, **options: Any) -> str | None:
        """An unset variable that an option names."""
        return missing_variables(options)

    @classmethod
    def check(cls, **options: Any) -> None:
        """Checks that the file and the name exist."""
        if not options.get("file") or not options.get("function"):
            raise InputError("names no function", place="retriever", remedy='retriever = "file:mine.py:search"')

    def search(self, text: str, k: int) -> tuple[Scored, int]:
        """Timed until the answer is read: a generator works while it is read."""
        return time_call(lambda: pair_scores(self._search(text, k), k))
