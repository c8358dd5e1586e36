"""The operating system's page cache: evict files from it, and check whether that worked."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
from collections.abc import Iterable
from pathlib import Path

_READ, _SHARED = 1, 1  # PROT_READ and MAP_SHARED


def files_under(folder: Path) -> list[Path]:
    """All regular files, sorted."""
    return [file for file in sorted(folder.rglob("*")) if file.is_file() and not file.is_symlink()]


def drop(files: Iterable[Path]) -> bool:
    """Flush the files and evict their pages. False if the system can't."""
    if not hasattr(os, "posix_fadvise"):
        return False
    for file in files:
        with contextlib.suppress(OSError):
            handle = os.open(file, os.O_RDONLY)
            try:
                os.fsync(handle)
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(handle)
    return True


def resident_share(files: Iterable[Path]) -> float | None:
    """The share of the files' pages in memory; None if unknown."""
    try:
        libc = ctypes.CDLL("libc.so.6", use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
        libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
        libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    except (OSError, AttributeError):
        return None
    pages = held = 0
    for file in files:
        size = file.stat().st_size
        count = -(-size // mmap.PAGESIZE)
        if not size:
            continue
        handle = os.open(file, os.O_RDONLY)
        try:
            address = libc.mmap(None, size, _READ, _SHARED, handle, 0)
            flags = ctypes.create_string_buffer(count)
            if address in (None, ctypes.c_void_p(-1).value) or libc.mincore(address, size, flags):
                return None
            libc.munmap(address, size)
        finally:
            os.close(handle)
        pages += count
        held += sum(byte & 1 for byte in flags.raw)
    return held / pages if pages else None
