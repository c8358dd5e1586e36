"""Cancellation: one flag per process, checked before every attempt. Waits end when it is set."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
STEP = 0.1  # seconds between checks of the flag

_flag = threading.Event()
_bought: set[object] = set()  # calls under way
_bought_until = 0.0  # when those are given up after a stop
handler: Callable[..., Any] | None = None  # of signals, where there is one that sets the flag before it raises


class DeadlineTimeout(Exception):
    """A call exceeded its deadline, even if bytes kept arriving."""


def stop(patience: float = 0.0) -> None:
    """Stops new attempts and waits. Paid calls get this many more seconds."""
    global _bought_until
    if not _flag.is_set():
        _bought_until = time.monotonic() + patience
    _flag.set()


def hurry() -> None:
    """Abandons paid calls too."""
    global _bought_until
    _bought_until = 0.0


def in_flight() -> int:
    """The number of pending paid calls."""
    return len(_bought)


@contextmanager
def under_way(call: object, *, bought: bool) -> Iterator[None]:
    """Registers a pending call, and whether its answer is paid for."""
    if bought:
        _bought.add(call)
    try:
        yield
    finally:
        _bought.discard(call)


def is_over(*, bought: bool) -> bool:
    """Whether a call is no longer waited for."""
    return _flag.is_set() and not (bought and time.monotonic() < _bought_until)


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
    if isinstance(error, KeyboardInterrupt) and handler and signal.getsignal(signal.SIGINT) is handler:
        return _flag.is_set()  # without it, no signal came: a plug-in raised this
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


def in_time(work: Callable[[], T], seconds: float, *, bought: bool = False) -> T:
    """The result of `work`, if it returns before the deadline and before cancellation.

    A paid call gets a little longer, even after Ctrl-C, so that its answer can be saved.

    SDKs only time out between two bytes. The work runs in a reused thread, since some SDKs keep a session per thread. A
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
    with under_way(worker, bought=bought):
        while not _is_done(worker, until, bought=bought):
            if is_over(bought=bought):
                raise KeyboardInterrupt
            if time.monotonic() >= until:
                worker.work = None
                worker.given.set()  # it ends after what it is doing
                raise DeadlineTimeout(f"not complete after {seconds:g} s")
    answer, error = worker.answer, worker.error
    worker.answer = worker.error = worker.work = None
    with _lock:
        _idle.append(worker)
    if error is not None:
        raise error
    return answer  # type: ignore[no-any-return]


def _is_done(worker: _Worker, until: float, *, bought: bool) -> bool:
    try:
        return worker.done.wait(min(STEP, max(0.0, until - time.monotonic())))
    except KeyboardInterrupt:
        if not (bought and _flag.is_set()):
            raise
        return False
