"""Progress reporting. The library is silent; the command line shows bars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TypeVar

from bakeoff.core.facts import Fact

Advance = Callable[[int], None]
Part = TypeVar("Part", bound=Sized)
Progress = Callable[[str, int], AbstractContextManager[Advance]]  # a label and the number of steps


@contextmanager
def silent(label: str, total: int) -> Iterator[Advance]:  # noqa: ARG001 - the shape of Progress
    """The default: a library call prints nothing."""
    yield lambda _steps: None


_current: ContextVar[Progress] = ContextVar("progress", default=silent)


_notice: ContextVar[Callable[[Fact], None]] = ContextVar("notice", default=lambda _said: None)


@contextmanager
def showing(progress: Progress, notice: Callable[[Fact], None] | None = None) -> Iterator[None]:
    """Shows `steps` and `tell` calls within the block; threads and other processes stay silent."""
    token = _current.set(progress)
    notices = _notice.set(notice or _notice.get())
    try:
        yield
    finally:
        _current.reset(token)
        _notice.reset(notices)


def tell(fact: Fact) -> None:
    """Shows a message to the user at once, from deep inside the work."""
    _notice.get()(fact)


def steps(label: str, total: int) -> AbstractContextManager[Advance]:
    """Progress of work deep below the command, shown if the caller uses `showing`."""
    return _current.get()(label, total)


def track(label: str, total: int, parts: Iterable[Part]) -> Iterator[Part]:
    """Yields the parts. Each advances the progress by its length."""
    with steps(label, total) as advance:
        for part in parts:
            yield part
            advance(len(part))
