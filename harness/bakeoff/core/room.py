"""Room on disk. Files that nobody keeps are in the system's temporary folder, which TMPDIR moves."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bakeoff_providers.errors import BakeoffError, InputError

TEMPORARY = "make room, or set TMPDIR to a folder on another disk"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_WORDS = ("no space left", "disk is full", "disk full", "not enough space")  # engines have errors of their own


@contextmanager
def needs_room(folder: Path | None = None, remedy: str = TEMPORARY) -> Iterator[None]:
    """Around what writes: a full disk is said with what helps, whoever found out. No folder: the temporary one."""
    try:
        yield
    except BakeoffError:
        raise
    except Exception as error:
        said = str(error).lower()
        if not (isinstance(error, OSError) and error.errno in _FULL) and not any(words in said for words in _WORDS):
            raise
        problem = f"can't be written ({getattr(error, 'strerror', None) or error})"
        raise InputError(problem, file=folder or tempfile.gettempdir(), remedy=remedy) from error


def check_room(folder: Path, needed: int, what: str, remedy: str = TEMPORARY) -> None:
    """Refuses before anything is written what can't fit."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        problem = f"{needed / 1e6:,.0f} MB of {what} are to come, {free / 1e6:,.0f} MB are free"
        raise InputError(problem, file=folder, remedy=remedy)
