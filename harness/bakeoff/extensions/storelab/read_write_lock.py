"""Searches and writes that must not meet: many may read at once, a write waits for them and has the store alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ReadWriteLock:
    """The lock of an application around an engine that can't be written to while it is searched. Writes go first."""

    def __init__(self, *, needed: bool) -> None:
        self._needed = needed
        self._changed = threading.Condition()
        self._readers = 0
        self._writers = 0  # waiting or at work
        self._writing = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Waits for writes to end."""
        if not self._needed:
            yield
            return
        with self._changed:
            self._changed.wait_for(lambda: not self._writers)
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keeps new searches waiting until it is over."""
        if not self._needed:
            yield
            return
        with self._changed:
            self._writers += 1
            self._changed.wait_for(lambda: not self._readers and not self._writing)
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writers -= 1
                self._writing = False
                self._changed.notify_all()
