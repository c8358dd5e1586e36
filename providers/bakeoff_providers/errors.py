"""Errors that have a remedy. Anything else that is raised is a bug."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_STEP = re.compile(r"\.?([^\s.\[\],]+)|\[(\d+)\]")
_MORE = r"(?:\.[^\s.\[\],]+|\[\d+\])"
_PATH = re.compile(rf"(?<!\S)(?:\${_MORE}+|[\w-]+(?:\.[^\s.\[\],]+)*\[\d+\]{_MORE}*)")


class BakeoffError(Exception):
    """The base class. Messages are written for the user, so no traceback is needed."""


def place_words(path: str) -> str:
    """A readable path into a file, counting from 1: `$.contender[1].store` is `contender 2, store`."""
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

    A place may be a path such as `$.contender[1]`, which is displayed in readable form.
    """

    def __init__(self, problem: str, *, file: Path | str | None = None, place: str = "", remedy: str = "") -> None:
        self.problem, self.file, self.place, self.remedy = problem, file, place, remedy
        where = ": ".join(str(part) for part in (file, place_words(place)) if part)
        super().__init__(f"{where}: {problem}" if where else problem)


LACKS = {
    "key_unset": "{variables} is not set",
    "key_unusable": "{variable} holds {sign}: no key has one",
    "variable_unset": "{variable} is not set",
    "server_unset": "needs a server: {variable} is not set",
    "server_or_engine": "{variable} is not set; or install {install}",
    "server_silent": "no server at {url}",
    "server_stopped": "no server at {url}: run {command}",
    "model_not_served": "{model} is not on the server at {url}: run {command}",
    "package": "install {install}",
    "weights": "run: {command}",
    "weights_absent": "the weights of {model} are not in {folder}; run: {command}",
    "weights_damaged": "the weights in {folder} are damaged; run: {command}",
    "undeclared": "a line-up names {what}: {example}",
}  # by id; results keep id and arguments


class Missing(NamedTuple):
    """One thing that is absent: an id of `LACKS` with its arguments."""

    id: str
    arguments: Mapping[str, str | Sequence[str]]

    @property
    def text(self) -> str:
        """The requirement as text. Of several names, one is enough."""
        plain = {name: v if isinstance(v, str) else " or ".join(v) for name, v in self.arguments.items()}
        return LACKS[self.id].format(**plain)


class Lack(str):
    """A missing requirement of a plug-in: text that keeps the facts it was made from."""

    facts: tuple[Missing, ...]

    def __new__(cls, *facts: Missing) -> Lack:
        """Join the texts of all facts."""
        made = super().__new__(cls, "; ".join(dict.fromkeys(missing.text for missing in facts)))
        made.facts = facts
        return made

    def __reduce__(self) -> tuple[type[Lack], tuple[Missing, ...]]:
        return Lack, self.facts


def lack(id_: str, /, **arguments: str | Sequence[str]) -> Lack:
    """One thing that is absent, with its arguments by name."""
    return Lack(Missing(id_, arguments))


def join_lacks(*reasons: str | None) -> str | None:
    """Joins all missing requirements. Another package's plug-in may use its own wording."""
    absent = [reason for reason in reasons if reason]
    facts = [fact for reason in absent if isinstance(reason, Lack) for fact in reason.facts]
    if len(facts) < len(absent):
        return "; ".join(absent)
    return Lack(*facts) if facts else None


class Unavailable(BakeoffError):
    """A contender can't run here (no key, library, weights or server). Only its row fails.

    `facts` say what it lacks, where `reason` is a `Lack`; `of` is what lacks it.
    """

    def __init__(self, reason: str, *, of: str = "") -> None:
        self.facts = reason.facts if isinstance(reason, Lack) else ()
        super().__init__(f"{of}: {reason}" if of else str(reason))


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
