"""Locks between processes. They end with the process that holds them, however it ends."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from bakeoff_providers import stopping
from bakeoff_providers.errors import Unavailable
from bakeoff_providers.files import is_at, try_lock

from bakeoff.calls.key_index import Keys
from bakeoff.core.facts import fact
from bakeoff.core.progress import tell

log = logging.getLogger(__name__)
WAIT = 0.05  # seconds between two looks at a claim of another process
SOON, LIMIT = 3.0, 1800.0  # seconds after which a wait is said, and given up
_FLOCK = struct.Struct("hhqqi4x")  # `struct flock` of 64-bit Linux
_LARGEST = (1 << 62) - 1  # offsets in a lock file are signed


def take_lock(file: int) -> bool:
    """Takes the file's lock if it is free. On systems without such locks, nothing is ever deleted."""
    return try_lock(file) is True


@contextlib.contextmanager
def lock_all(files: list[Path]) -> Iterator[bool]:
    """Whether all files could be locked. The locks are held within the block."""
    handles: list[int] = []
    try:
        try:
            handles += [os.open(file, os.O_RDWR) for file in files]
        except OSError:  # another process is deleting them
            yield False
            return
        yield all(take_lock(handle) for handle in handles)
    finally:
        for handle in handles:
            os.close(handle)


class InUse:
    """Marks a folder as being read. Many processes may read it at once; none may delete or rewrite it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._handle: int | None = None

    def hold(self) -> None:
        """Holds the folder until `close`, once it exists. Waits for a process that is deleting it.

        Where files can't be created, nothing is held: they can't be deleted there either.
        """
        while self._handle is None and self._file.parent.is_dir():
            try:
                handle = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError:
                return
            ours = try_lock(handle, shared=True)
            if ours and _leads_to(self._file, handle):
                self._handle = handle
                return
            os.close(handle)  # no locks here, or another process is deleting or has deleted it
            if ours is None:
                return
            if not ours:
                stopping.sleep(WAIT)

    def close(self) -> None:
        """Others may delete the files again."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def __del__(self) -> None:
        """Release on garbage collection."""
        self.close()


def _leads_to(path: Path, handle: int) -> bool:
    try:
        return is_at(handle, path)
    except OSError:
        return False


class Claims:
    """Texts being requested right now: one locked byte per text, at an offset derived from its key.

    The locks belong to the process. `_held` tells its threads apart.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._handle: int | None = None
        self._held: set[int] = set()
        self._lock = threading.Lock()
        self._said = False

    def take(self, keys: Keys) -> list[bool]:
        """Claims the keys that are free. True for each key that is now ours."""
        return [self._take(offset) for offset in _offsets(keys)]

    def release(self, keys: Keys) -> None:
        """Lets others request these keys."""
        for offset in _offsets(keys):
            self._release(offset)

    def wait(self, keys: Keys) -> None:
        """Waits until no other process is requesting these keys.

        A suspended process keeps its claims: it is soon reported, and ignored after a limit.
        """
        start, said = time.monotonic(), False
        for offset in _offsets(keys):
            while not self._take(offset):
                waited = time.monotonic() - start
                if waited > LIMIT:
                    other = f"process {self._holder(offset)} on {socket.gethostname()}"
                    raise Unavailable(
                        f"waited {LIMIT / 60:g} minutes for {other}, which is requesting the same texts; "
                        "stop it or let it finish, then rerun"
                    )
                if waited > SOON and not said:
                    said = True
                    tell(fact("waits_for", process=self._holder(offset), host=socket.gethostname(), limit=LIMIT))
                stopping.sleep(WAIT)
            self._release(offset)  # at once, so that two processes waiting for the same keys don't deadlock

    def close(self) -> None:
        """Releases all claims."""
        self._held.clear()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _take(self, offset: int) -> bool:
        with self._lock:
            if offset in self._held or not self._change(offset, lock=True):
                return False
            self._held.add(offset)
            return True

    def _release(self, offset: int) -> None:
        with self._lock:
            self._held.discard(offset)
            self._change(offset, lock=False)

    def _change(self, offset: int, *, lock: bool) -> bool:
        """Takes or releases this process's lock. False if another process holds it."""
        try:
            import fcntl
        except ImportError:
            return True
        handle = self._open()
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB if lock else fcntl.LOCK_UN, 1, offset)
        except OSError as error:
            if lock and error.errno in (errno.EACCES, errno.EAGAIN):  # the lock is held by another process
                return False
            self._say_unlocked(error)
        return True

    def _holder(self, offset: int) -> int:
        """The process that holds this claim; 0 if unknown. A thread's claim belongs to this process."""
        if offset in self._held:
            return os.getpid()
        import fcntl

        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0)
        with contextlib.suppress(OSError, struct.error):
            kind, _, _, _, process = _FLOCK.unpack(fcntl.fcntl(self._open(), fcntl.F_GETLK, asked))
            return process if kind != fcntl.F_UNLCK else 0
        return 0

    def _say_unlocked(self, error: OSError) -> None:
        """Without file locks, as on NFS without lockd, processes can't wait for each other and all send requests."""
        if not self._said:
            self._said = True
            reason = error.strerror or error
            log.warning("%s can't be locked (%s): two runs at once may pay for the same text twice", self._file, reason)

    def _open(self) -> int:
        if self._handle is None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o666)
        return self._handle


def _offsets(keys: Keys) -> list[int]:
    return [int(key) & _LARGEST for key in keys[:, 0]]
