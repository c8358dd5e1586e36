"""Folders for indexes that nobody keeps: gone when their run ends, and collected by the next one after a kill."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PREFIX = "bakeoff-"
LOCK = ".in-use"  # locked for as long as its process lives, however it ends
SERVER = "postmaster.pid"  # PostgreSQL writes its process and its folder into it
PATIENCE = 1.0  # seconds that a server gets to stop by itself

_open: dict[Path, int] = {}


@contextlib.contextmanager
def scratch(name: str = "run") -> Iterator[Path]:
    """A new folder. Before it is made, those that killed runs left behind are removed."""
    collect()
    folder = Path(tempfile.gettempdir()) / f"{PREFIX}{name}-{os.getpid()}-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o755)
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    _lock(handle)
    _open[folder] = handle
    try:
        yield folder
    finally:
        discard(folder)


def discard(folder: Path) -> None:
    """Stops what still runs in the folder and removes it."""
    _stop_servers(folder)
    shutil.rmtree(folder, ignore_errors=True)
    handle = _open.pop(folder, None)
    if handle is not None:
        os.close(handle)


def discard_all() -> None:
    """For a process that is about to end by force."""
    for folder in list(_open):
        discard(folder)


def collect() -> list[Path]:
    """Removes the folders whose process is gone; says which."""
    removed = []
    for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"):
        if lock.parent in _open:
            continue
        with contextlib.suppress(OSError):
            handle = os.open(lock, os.O_RDWR)
            try:
                if _lock(handle):
                    _stop_servers(lock.parent)
                    shutil.rmtree(lock.parent, ignore_errors=True)
                    removed.append(lock.parent)
            finally:
                os.close(handle)
    return removed


def _lock(handle: int) -> bool:
    try:
        import fcntl
    except ImportError:  # no such locks here: nothing is ever collected
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _stop_servers(folder: Path) -> None:
    """Ends each PostgreSQL whose data is in the folder: its file names a process, whose command line confirms it."""
    import psutil

    servers: list[Any] = []
    for file in folder.rglob(SERVER):
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            server = psutil.Process(int(file.read_text().split("\n", 1)[0]))
            if any(str(file.parent) in part for part in server.cmdline()):
                servers += [server, *server.children(recursive=True)]
                server.send_signal(getattr(signal, "SIGQUIT", signal.SIGTERM))  # at once: its data is not wanted
    for process in psutil.wait_procs(servers, timeout=PATIENCE)[1]:
        with contextlib.suppress(psutil.Error):
            process.kill()
