"""Temporary index folders: removed when their run ends, or by the next run after a kill.

The process that created a folder holds a lock in it while it lives. A collector takes that lock before it removes
anything. A creator checks, after locking, that its folder still exists. A folder with a note about something created
elsewhere stays until that is removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bakeoff_providers.errors import InputError
from bakeoff_providers.files import is_at, remove_drafts, try_lock
from bakeoff_providers.weights import home

from bakeoff.core.extensions import collect_entries, load_place

PREFIX = "bakeoff-"
LOCK = ".in-use"  # locked while its process lives
NOTE = "made-on-server.json"  # notes what was created elsewhere, until that is removed
ABANDONED = 60.0  # seconds after which an unlocked empty folder is abandoned
HOME_DEPTH = 4  # depth of folders below the home that are written to

_OURS = re.compile(rf"{PREFIX}[\w-]+-\d+-[0-9a-f]{{8}}")
_open: dict[Path, int] = {}


@contextlib.contextmanager
def scratch(name: str = "run") -> Iterator[Path]:
    """A new folder. Leftovers of killed runs are removed first."""
    collect()
    with contextlib.suppress(InputError):  # an unusable home is reported where it is needed
        remove_drafts(home(), below=HOME_DEPTH)
    folder = _new_folder(name)
    try:
        yield folder
    finally:
        discard(folder)


def _new_folder(name: str) -> Path:
    """Retries if a collector removed the folder before it was locked."""
    while True:
        folder = Path(tempfile.gettempdir()) / f"{PREFIX}{name}-{os.getpid()}-{secrets.token_hex(4)}"
        folder.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700)  # root's PostgreSQL runs as another user
        try:
            handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue
        _open[folder] = handle
        if try_lock(handle) is not False and is_at(handle, folder / LOCK):  # without locks, nothing is ever collected
            return folder
        os.close(_open.pop(folder))


def discard(folder: Path) -> None:
    """Stops what still runs in the folder and removes it."""
    _remove(folder)
    handle = _open.pop(folder, None)
    if handle is not None:
        os.close(handle)


def discard_all() -> None:
    """Remove all folders, before the process ends by force."""
    for folder in list(_open):
        discard(folder)


def collect() -> list[Path]:
    """Remove folders of dead processes and return them."""
    removed = []
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if folder not in _open:
            with contextlib.suppress(OSError):
                if _collect(folder):
                    removed.append(folder)
    return removed


def _collect(folder: Path) -> bool:
    lock = folder / LOCK
    if not lock.exists():  # killed before locking; a new one is younger
        if not _OURS.fullmatch(folder.name) or time.time() - folder.stat().st_mtime < ABANDONED:
            return False
        folder.rmdir()  # an empty one only
        return True
    handle = os.open(lock, os.O_RDWR)
    try:
        if not try_lock(handle) or not is_at(handle, lock):
            return False
        _follow_notes(folder)
        _remove(folder)
        return not folder.exists()
    finally:
        os.close(handle)


def _remove(folder: Path) -> None:
    """The lock goes last, so that an interrupted removal is collected later. Notes of leftovers elsewhere stay."""
    for place in collect_entries("BEFORE_REMOVAL").values():
        load_place(place)(folder)
    with contextlib.suppress(OSError):
        if any(folder.rglob(NOTE)):
            _remove_but_notes(folder)
            return
        for part in list(folder.iterdir()):
            if part.is_dir() and not part.is_symlink():
                shutil.rmtree(part, ignore_errors=True)
            elif part.name != LOCK:
                part.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _remove_but_notes(folder: Path) -> None:
    for inner, folders, files in os.walk(folder, topdown=False):
        for name in files:
            if name not in (NOTE, LOCK):
                (Path(inner) / name).unlink(missing_ok=True)
        for name in folders:
            path = Path(inner) / name
            with contextlib.suppress(OSError):  # one that still holds a note
                path.unlink() if path.is_symlink() else path.rmdir()


def _follow_notes(folder: Path) -> None:
    for note in list(folder.rglob(NOTE)):
        from bakeoff.search.stores.servers import drop_left

        with contextlib.suppress(OSError):
            drop_left(note)
