"""How long work tells where it is. The library is silent; the command line shows bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Advance = Callable[[int], None]
Progress = Callable[[str, int], AbstractContextManager[Advance]]  # a label and the number of steps to come


@contextmanager
def silent(label: str, total: int) -> Iterator[Advance]:  # noqa: ARG001 - the shape of Progress
    """The default, so that a library call prints nothing."""
    yield lambda _steps: None
