"""How long work tells where it is. The library is silent; the command line shows bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

Advance = Callable[[int], None]
Progress = Callable[[str, int], AbstractContextManager[Advance]]  # a label and the number of steps to come


@contextmanager
def silent(label: str, total: int) -> Iterator[Advance]:  # noqa: ARG001 - the shape of Progress
    """The default, so that a library call prints nothing."""
    yield lambda _steps: None


_current: ContextVar[Progress] = ContextVar("progress", default=silent)


@contextmanager
def showing(progress: Progress) -> Iterator[None]:
    """While it lasts, whatever calls `steps` below is shown here; threads and other processes stay silent."""
    token = _current.set(progress)
    try:
        yield
    finally:
        _current.reset(token)


def steps(label: str, total: int) -> AbstractContextManager[Advance]:
    """For work far below the command: so many steps, shown where the caller wants them to be."""
    return _current.get()(label, total)
