"""The one way in which a file gets its name: it appears whole, or not at all; a disk that refuses is bad input.

Locks on files never wait, and end with the process that holds them, however it ends.
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


# What a disk or a folder refuses; an error of the network has none of these.
_REFUSED = (
    errno.ENOSPC, errno.EROFS, errno.EFBIG, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EIO, errno.ENAMETOOLONG,
    errno.ENOTDIR, errno.EISDIR, errno.ENOENT, errno.EEXIST, errno.ELOOP, errno.EINVAL,
)  # fmt: skip

_DRAFT = ".bakeoff-part"
_IS_DRAFT = re.compile(rf"\..+\.[0-9a-f]{{8}}{re.escape(_DRAFT)}", re.DOTALL)
_looked_at: set[tuple[Path, int]] = set()


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """What the disk refuses within the block is said of this file or folder."""
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
        raise InputError("is no name that a file may have", file=target, remedy="choose another name") from None


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary file beside the target that takes its name only if the block ends well.

    A reader never sees half a file, not even after a kill.
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
    """Makes a file or a folder beside the target, under a name that the next writer here removes if this one is killed.

    It is locked for as long as its writer lives: what can be locked is nobody's any more.
    """
    remove_drafts(target.parent)
    while True:
        draft = target.with_name(f".{target.name}.{os.urandom(4).hex()}{_DRAFT}")
        make(draft)
        try:
            handle = _lock(draft)
        except OSError:  # no such locks here: then nobody removes it, either
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
    """What killed writers have left in a folder, and so many levels below; looked for once in a process."""
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
    """The handle that holds its lock; None where another has it or it is gone. Raises where there are no locks."""
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
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))  # less the user's umask
