"""Cancellation: one flag per process, checked before every attempt. Waits end when it is set."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
STEP = 0.1  # seconds between checks of the flag

_flag = threading.Event()


class DeadlineTimeout(Exception):
    """A call exceeded its deadline, even if bytes kept arriving."""


def stop() -> None:
    """Cancels all further attempts and waits."""
    _flag.set()


def resume() -> None:
    """Clears the flag, for a new run in the same process."""
    _flag.clear()


def is_stopped() -> bool:
    """Whether cancellation was requested."""
    return _flag.is_set()


def check() -> None:
    """Raises if cancelled. Called before every attempt."""
    if _flag.is_set():
        raise KeyboardInterrupt


def ends_run(error: BaseException) -> bool:
    """Whether an exception ends the run. A contender's sys.exit or cancelled task is its own failure."""
    return isinstance(error, (KeyboardInterrupt, GeneratorExit)) or (
        _flag.is_set() and not isinstance(error, Exception)
    )


def sleep(seconds: float) -> None:
    """Sleeps until the time is up or the flag is set."""
    if _flag.wait(seconds):
        raise KeyboardInterrupt


class _Worker(threading.Thread):
    """A thread that makes calls for others. The process does not wait for it on exit."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="bakeoff-call")
        self.work: Callable[[], Any] | None = None
        self.answer: Any = None
        self.error: BaseException | None = None
        self.given, self.done = threading.Event(), threading.Event()

    def run(self) -> None:
        while True:
            self.given.wait()
            self.given.clear()
            if (work := self.work) is None:
                return
            self.answer = self.error = None
            try:
                self.answer = work()
            except BaseException as error:
                self.error = error
            self.done.set()


_idle: list[_Worker] = []
_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # threads don't survive a fork


def in_time(work: Callable[[], T], seconds: float) -> T:
    """The result of `work`, if it returns before the deadline and before cancellation.

    SDK timeouts apply between two bytes only. The thread is reused, since some SDKs keep one session per thread. A
    thread that missed its deadline is abandoned.
    """
    check()
    with _lock:
        worker = _idle.pop() if _idle else None
    if worker is None:
        worker = _Worker()
        worker.start()
    worker.done.clear()
    worker.work = work
    worker.given.set()
    until = time.monotonic() + seconds
    while not worker.done.wait(min(STEP, max(0.0, until - time.monotonic()))):
        check()
        if time.monotonic() >= until:
            worker.work = None
            worker.given.set()  # it ends after its current work
            raise DeadlineTimeout(f"not complete after {seconds:g} s")
    answer, error = worker.answer, worker.error
    worker.answer = worker.error = worker.work = None
    with _lock:
        _idle.append(worker)
    if error is not None:
        raise error
    return answer  # type: ignore[no-any-return]
