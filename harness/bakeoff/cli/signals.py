"""Ctrl-C and SIGTERM end a command within two seconds: no new requests, and everything received is saved.

Ctrl-C waits a few seconds longer for paid responses; a second Ctrl-C exits at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

from bakeoff_providers import stopping

GRACE = 1.0  # seconds to close files, stop servers and remove folders
PATIENCE = 5.0  # seconds that Ctrl-C waits for paid responses
LAST = 0.5  # further seconds to remove folders
MESSAGE = "interrupted: vectors, answers and grades so far are saved; the same command resumes from there"
LEFTOVER = 2.0  # seconds for leftover library threads after the last output
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

received: list[int] = []
_leaving = threading.Lock()


def install() -> None:
    """Installs the handlers. After the grace period, native code that does not return is abandoned."""
    if threading.current_thread() is not threading.main_thread():
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    for number in SIGNALS:
        signal.signal(number, _interrupt)
    stopping.handler = _interrupt
    threading.Thread(target=_watch, args=(reader, writer), daemon=True, name="bakeoff-signals").start()


@contextlib.contextmanager
def allow_interrupt() -> Iterator[None]:
    """For commands that Ctrl-C ends normally: raises KeyboardInterrupt instead."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler, wakeup = signal.signal(signal.SIGINT, signal.default_int_handler), signal.set_wakeup_fd(-1)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)


def exit_code() -> int:
    """The exit code a shell expects after a signal."""
    return 128 + (received[0] if received else signal.SIGINT)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    received.append(number)
    stopping.stop(_patience(number))
    if len(received) == 1:  # a second signal must not disturb the exit
        raise KeyboardInterrupt


def _watch(reader: socket.socket, writer: socket.socket) -> None:
    """Runs in a thread, which sees the signal even while the main thread is in native code."""
    while True:
        number = reader.recv(1)
        if not number:
            writer.close()
            return
        if number[0] in SIGNALS:
            break
    stopping.stop(_patience(number[0]))
    import psutil  # noqa: F401 - imported now, because it would be too late after the grace period

    limit = time.monotonic() + _patience(number[0])
    if (bought := stopping.in_flight()) and _patience(number[0]):
        waits = f"waiting for {bought} paid responses, at most {PATIENCE:g} s; press Ctrl-C again to exit now\n"
        with contextlib.suppress(OSError):
            os.write(2, waits.encode())
    reader.settimeout(0.05)
    end = time.monotonic() + GRACE
    while time.monotonic() < end:
        if stopping.in_flight() and time.monotonic() < limit:
            end = time.monotonic() + GRACE
        with contextlib.suppress(TimeoutError):
            if reader.recv(1):  # a second signal
                stopping.hurry()
                break
            threading.Event().wait(GRACE)  # nothing is being sent any more
    leave(128 + number[0], message())


def _patience(number: int) -> float:
    return PATIENCE if number == signal.SIGINT else 0.0


def message() -> str:
    """What is kept, wrapped to the terminal."""
    with contextlib.suppress(Exception):  # the message must get out even if the terminal is broken
        from bakeoff.core.printable import screen_width, wrap

        if os.isatty(2):
            return "\n".join(wrap(MESSAGE, screen_width(sys.stderr)))
    return MESSAGE


def leave_threads(code: int) -> None:
    """Ends the process even if a library left a thread running."""
    others = [one for one in threading.enumerate() if not one.daemon and one is not threading.main_thread()]
    if others:
        threading.Thread(target=_leave_late, args=(code,), daemon=True, name="bakeoff-end").start()


def _leave_late(code: int) -> None:
    threading.Event().wait(LEFTOVER)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def leave(code: int, message: str) -> NoReturn:
    """Ends the process and its children and removes its folders, without Python's exit, which waits for threads.

    After a normal exit, everything is closed already; otherwise the grace period is over.
    """
    if not _leaving.acquire(timeout=LAST):  # the other thread is exiting and takes too long
        os._exit(code)
    with contextlib.suppress(Exception):
        import psutil

        from bakeoff.search.stores.scratch import discard_all

        os.write(2, f"{message}\n".encode())  # not print: the main thread may hold its lock
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.terminate()
        discard_all()
    os._exit(code)
