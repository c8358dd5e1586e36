"""Locks on files that never wait. They end with the process that holds them, however it ends."""

from __future__ import annotations

import os
from pathlib import Path


def try_lock(handle: int, *, shared: bool = False) -> bool | None:
    """Takes the file's lock: False where another process holds it, None where there are no such locks here."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def is_at(handle: int, path: Path) -> bool:
    """Whether this file is still the one that its path leads to: it may have been removed before it was locked."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
