"""A user's search function: `search(text, k)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from bakeoff_providers.code import load_from_file
from bakeoff_providers.errors import InputError
from bakeoff_providers.keys import fill_in, missing_variables
from bakeoff_providers.shared_options import File, FunctionName

from bakeoff.core.clock import time_call
from bakeoff.search.retrievers import Retriever, Scored, Unknown, pair_scores


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
