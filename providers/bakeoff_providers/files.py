"""The one way in which a file gets its name: it appears whole, or not at all; a disk that refuses is bad input."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bakeoff_providers.errors import InputError

# What a disk or a folder refuses; an error of the network has none of these.
_REFUSED = (
    errno.ENOSPC, errno.EROFS, errno.EFBIG, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EIO, errno.ENAMETOOLONG,
    errno.ENOTDIR, errno.EISDIR, errno.ENOENT, errno.EEXIST, errno.ELOOP, errno.EINVAL,
)  # fmt: skip


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
        part = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))  # less the user's umask
        try:
            yield part
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
