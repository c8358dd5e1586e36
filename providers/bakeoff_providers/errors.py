"""Everything that may go wrong and has a remedy. Anything else that is raised is a bug of ours."""

from __future__ import annotations

from pathlib import Path


class BakeoffError(Exception):
    """The root: its text is written for the person at the terminal, so no traceback is needed."""


class InputError(BakeoffError):
    """Something the user gave is wrong: says where, what was expected, and what to do about it."""

    def __init__(self, problem: str, *, file: Path | str | None = None, place: str = "", remedy: str = "") -> None:
        self.problem, self.file, self.place, self.remedy = problem, file, place, remedy
        where = ": ".join(str(part) for part in (file, place) if part)
        super().__init__(f"{where}: {problem}" if where else problem)


class Unavailable(BakeoffError):
    """A contender can't run here (no key, no library, no weights, no server): its row says so, the others go on."""


class EmbeddingFailed(BakeoffError):
    """A provider gave no usable vectors, and asking again would not help."""


class StoreError(BakeoffError):
    """A store answered what can't be used, or can't hold these vectors: its row says so, the others go on."""


class CallFailed(BakeoffError):
    """One call to a provider failed; `retryable` and `retry_after` are what the one retry policy needs to know."""

    def __init__(
        self, message: str, *, status: int | None = None, retryable: bool = False, retry_after: float | None = None
    ) -> None:
        self.status, self.retryable, self.retry_after = status, retryable, retry_after
        super().__init__(message)
