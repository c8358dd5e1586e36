"""Errors that have a remedy. Anything else that is raised is a bug."""

from __future__ import annotations

import re
from pathlib import Path

_STEP = re.compile(r"\.?([^\s.\[\],]+)|\[(\d+)\]")
_MORE = r"(?:\.[^\s.\[\],]+|\[\d+\])"
_PATH = re.compile(rf"(?<!\S)(?:\${_MORE}+|[\w-]+(?:\.[^\s.\[\],]+)*\[\d+\]{_MORE}*)")


class BakeoffError(Exception):
    """The base class. Messages are written for the user, so no traceback is needed."""


def place_words(path: str) -> str:
    """A path into a file in words, counting from 1: `$.contender[1].store` is `contender 2, store`."""
    return _PATH.sub(_in_words, path)


def _in_words(match: re.Match[str]) -> str:
    words, counted = "", False
    for key, index in _STEP.findall(match[0].removeprefix("$")):
        if key:
            words += (", " if counted else "." if words else "") + key
        else:
            words += f"{', ' if counted else ' ' if words else 'entry '}{int(index) + 1}"
        counted = not key
    return words


class InputError(BakeoffError):
    """Invalid user input: where it is, what was expected, and what to do.

    A place may be a path such as `$.contender[1]`, which is displayed in words.
    """

    def __init__(self, problem: str, *, file: Path | str | None = None, place: str = "", remedy: str = "") -> None:
        self.problem, self.file, self.place, self.remedy = problem, file, place, remedy
        where = ": ".join(str(part) for part in (file, place_words(place)) if part)
        super().__init__(f"{where}: {problem}" if where else problem)


class Unavailable(BakeoffError):
    """A contender can't run here (no key, library, weights or server). Only its row fails."""


class BrokenPlugin(Unavailable):
    """Another package's plug-in can't be loaded. `package` includes the version, `place` is the entry point."""

    def __init__(self, noun: str, name: str, package: str, place: str, cause: str) -> None:
        self.name, self.package, self.place, self.cause = name, package, place, cause
        super().__init__(f"{noun} {name!r} of {package} can't be loaded from {place}: {cause}")


class EmbeddingFailed(BakeoffError):
    """A provider returned no usable vectors, and a retry would not help."""


class StoreError(BakeoffError):
    """A store returned something unusable, or can't hold these vectors. Only its row fails."""


class CallFailed(BakeoffError):
    """A call to a provider failed. `retryable` and `retry_after` are for the retry policy."""

    def __init__(
        self, message: str, *, status: int | None = None, retryable: bool = False, retry_after: float | None = None
    ) -> None:
        self.status, self.retryable, self.retry_after = status, retryable, retry_after
        super().__init__(message)


class AnswerUnusable(CallFailed):
    """An answer arrived and is charged, but is unusable."""


def is_panic(error: BaseException) -> bool:
    """Whether a Rust library panicked, which raises no Exception."""
    return type(error).__name__ == "PanicException"
