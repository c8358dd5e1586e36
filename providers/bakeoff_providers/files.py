"""Atomic file writes. A disk that refuses is an InputError.

File locks never wait, and end with the process that holds them.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bakeoff_providers.errors import InputError


def try_lock(handle: int, *, shared: bool = False) -> bool | None:
    """Takes the file's lock. False if another process holds it, None if the system has no such locks."""
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
    """Whether the path still leads to this file, which may have been removed before it was locked."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


# Errors of a disk or folder; network errors are not among them.
_REFUSED = (
    errno.ENOSPC, errno.EROFS, errno.EFBIG, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EIO, errno.ENAMETOOLONG,
    errno.ENOTDIR, errno.EISDIR, errno.ENOENT, errno.EEXIST, errno.ELOOP, errno.EINVAL,
)  # fmt: skip

_DRAFT = ".bakeoff-part"
_IS_DRAFT = re.compile(rf"\..+\.[0-9a-f]{{8}}{re.escape(_DRAFT)}", re.DOTALL)
_looked_at: set[tuple[Path, int]] = set()


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Reports disk errors within the block for this file or folder."""
    try:
        yield
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
        remedy = "make room, or choose another place"
        raise InputError(f"can't be written: {error.strerror}", file=target, remedy=remedy) from error
    except ValueError as error:  # a null byte
        if "null" not in str(error):
            raise
        raise InputError("is not a valid file name", file=target, remedy="choose another name") from None


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary file next to the target, renamed if the block succeeds.

    Readers never see half a file, even after a kill.
    """
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with draft_of(target, _new_file) as part:
            try:
                yield part
                part.replace(target)
            finally:
                part.unlink(missing_ok=True)


@contextmanager
def draft_of(target: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    """Creates a draft next to the target. If this process is killed, the next writer removes it.

    It is locked while its writer lives. An unlocked draft is abandoned.
    """
    remove_drafts(target.parent)
    while True:
        draft = target.with_name(f".{target.name}.{os.urandom(4).hex()}{_DRAFT}")
        make(draft)
        try:
            handle = _lock(draft)
        except OSError:  # no locks here, so nobody removes it either
            handle = None
            break
        if handle is not None:
            break
    try:
        yield draft
    finally:
        if handle is not None:
            os.close(handle)


def remove_drafts(folder: Path, below: int = 0) -> None:
    """Removes abandoned drafts in a folder and `below` levels under it, once per process."""
    if (folder, below) in _looked_at:
        return
    _looked_at.add((folder, below))
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in list(entries):
            path = Path(entry.path)
            with suppress(OSError):
                if _IS_DRAFT.fullmatch(entry.name):
                    _remove_if_left(path)
                elif below and entry.is_dir(follow_symlinks=False):
                    remove_drafts(path, below - 1)


def _remove_if_left(draft: Path) -> None:
    handle = _lock(draft)
    if handle is None:
        return
    try:
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink()
    finally:
        os.close(handle)


def _lock(path: Path) -> int | None:
    """The handle that holds the lock; None if another has it or it is gone. Raises if there are no locks."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        locked = try_lock(handle)
        if locked is None:
            raise OSError(errno.ENOLCK, "no locks")
        if locked and is_at(handle, path):
            return handle
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _new_file(path: Path) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))  # minus the user's umask
