"""A vector shard: float32 rows in one mappable file, and a manifest next to it.

`NAME.f32` holds only rows. `NAME.manifest` starts with the identity and the dimension, then has one record per batch:
keys, tokens, and the checksum of the batch's rows. Rows are written first and count once their record is written. A
killed process leaves at most some rows without a record. Other records hold the time of a call for one text.
"""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import secrets
import struct
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash
from bakeoff_providers.base import Vectors

from bakeoff.calls.key_index import Keys, Places, keys_from
from bakeoff.calls.locks import take_lock
from bakeoff.core.figures import CallTime
from bakeoff.core.files import write_all
from bakeoff.core.hashing import KEY_BYTES, Identity

ROWS, MANIFEST = ".f32", ".manifest"
_HEAD_MAGIC, _MAGIC, _TIME_MAGIC = b"BKS1", b"BKR1", b"BKT1"
_HEAD = struct.Struct("<4sIQ")  # magic, length of the description, its checksum
_RECORD = struct.Struct("<4sIQQQ")  # magic, rows, first row, checksum of the rows, checksum of the keys and tokens
# A time record has the same head: magic, length of the body, 0, 0, checksum of the body (key, CallTime as JSON).
_CHECK = struct.Struct("<Q")  # checksum of the record's own head
_MAPPED_AT_ONCE = 1 << 26  # bytes mapped per check
_OPEN_AT_ONCE = 16  # shards open for reading; a space may have thousands

Tokens = npt.NDArray[np.float32]


class Description(msgspec.Struct, frozen=True):
    """The start of a manifest."""

    identity: dict[str, str | int | float | bool | None]
    dimensions: int


class Batch(NamedTuple):
    """One valid record: the keys of consecutive rows, from `start` on."""

    start: int
    keys: Keys
    tokens: Tokens


def checksum(data: bytes | memoryview) -> int:
    """A 64-bit checksum, fast enough to check every byte whenever a space is opened."""
    return xxhash.xxh3_64_intdigest(data)


class ShardWriter:
    """Appends batches to its own shard, locked until it is closed, so that it can't be deleted meanwhile."""

    def __init__(self, folder: Path, identity: Identity, dimensions: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.stem = folder / f"{os.getpid()}-{secrets.token_hex(4)}"
        self.dimensions = dimensions
        self._rows = 0
        self._manifest_end = 0
        flags, mode = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666  # minus the user's umask
        self._manifest = os.open(self.stem.with_name(self.stem.name + MANIFEST), flags, mode)
        take_lock(self._manifest)
        self._vectors = os.open(self.stem.with_name(self.stem.name + ROWS), flags, mode)
        text = msgspec.json.encode(Description(dict(identity), dimensions))
        self._write_manifest(_HEAD.pack(_HEAD_MAGIC, len(text), checksum(text)) + text)

    def append(self, keys: bytes, tokens: Tokens, vectors: Vectors) -> int:
        """Writes a batch and returns its first row. When it returns, the batch outlives this process."""
        rows = np.ascontiguousarray(vectors, dtype="<f4")
        body = keys + np.ascontiguousarray(tokens, dtype="<f4").tobytes()
        start = self._rows
        write_all(self._vectors, rows.data.cast("B"), start * self.dimensions * 4)
        head = _RECORD.pack(_MAGIC, len(rows), start, checksum(rows.data), checksum(body))
        self._write_manifest(head + _CHECK.pack(checksum(head)) + body)
        self._rows += len(rows)
        return start

    def append_time(self, key: bytes, time: CallTime) -> None:
        """Records how long the call for this key took."""
        body = key + msgspec.json.encode(time)
        head = _RECORD.pack(_TIME_MAGIC, len(body), 0, 0, checksum(body))
        self._write_manifest(head + _CHECK.pack(checksum(head)) + body)

    def close(self) -> None:
        """Closes the shard, which is on disk then, and its lock."""
        for handle in (self._vectors, self._manifest):
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def _write_manifest(self, data: bytes) -> None:
        write_all(self._manifest, memoryview(data), self._manifest_end)
        self._manifest_end += len(data)


@dataclass(slots=True, weakref_slot=True, eq=False)
class Shard:
    """A shard for reading: the records of its manifest so far, and its rows."""

    stem: Path
    description: Description | None = None
    damaged: int = 0
    _read_to: int = 0
    _length: int = 0
    _handle: _Handle | None = None
    _mapped: npt.NDArray[np.float32] | None = None
    times: dict[bytes, CallTime] = field(default_factory=dict)  # by key, of calls that delivered a vector

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the files itself."""
        return Shard, (self.stem, self.description)

    @property
    def torn(self) -> bool:
        """Whether the manifest ends within a record (killed or being written) or has a damaged head."""
        return self._read_to < self._length

    def mark(self) -> tuple[Description | None, int]:
        """Its description and read position."""
        return self.description, self._read_to

    def has_grown(self) -> bool:
        """Whether the manifest's length has changed since it was last read, or it ended within a record.

        The file is opened for this, because a network file system may serve stale attributes for a path.
        """
        try:
            handle = os.open(f"{self.stem}{MANIFEST}", os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except FileNotFoundError:  # pruned by another process
            return False
        try:
            return os.fstat(handle).st_size != self._length or self.torn
        finally:
            os.close(handle)

    def new_batches(self, *, trusted: bool = False) -> Iterator[Batch]:
        """The valid records since the last call. `trusted` rows were written by this process."""
        self.close()  # a copy that has grown is a new file
        try:
            with self.stem.with_name(self.stem.name + MANIFEST).open("rb") as file:
                file.seek(self._read_to)
                data = file.read()
        except FileNotFoundError:  # pruned by another process
            return
        self._length = self._read_to + len(data)
        at = 0
        if self._read_to == 0:
            at = self._read_head(data)
            if self.description is None:
                return
        rows_file = None if trusted else self._rows_file()  # stays open until everything is checked
        window = _Window(None if rows_file is None else rows_file.number)
        while at + _RECORD.size + _CHECK.size <= len(data):
            head = data[at : at + _RECORD.size]
            magic, rows, start, of_rows, of_body = _RECORD.unpack(head)
            (check,) = _CHECK.unpack_from(data, at + _RECORD.size)
            begin = at + _RECORD.size + _CHECK.size
            is_time = magic == _TIME_MAGIC
            end = begin + rows * (1 if is_time else KEY_BYTES + 4)
            if magic not in (_MAGIC, _TIME_MAGIC) or checksum(head) != check:
                self.damaged += 1
                following = data.find(_MAGIC, at + 1)  # the record after a damaged head may be valid
                if following < 0:
                    self._read_to = self._length
                    return
                at = following
                continue
            if end > len(data):
                break
            body = data[begin:end]
            at = end
            if is_time and checksum(body) == of_body:
                self.times[body[:KEY_BYTES]] = msgspec.json.decode(body[KEY_BYTES:], type=CallTime)
            elif checksum(body) == of_body and (trusted or self._sound(start, rows, of_rows, window)):
                keys, tokens = body[: rows * KEY_BYTES], np.frombuffer(body[rows * KEY_BYTES :], dtype="<f4")
                yield Batch(start, keys_from(keys), tokens)
            else:
                self.damaged += 1
        self._read_to += at

    def read(self, start: int, out: Vectors) -> None:
        """Copies consecutive rows into place."""
        view, offset, file = out.data.cast("B"), start * self.dimensions * 4, self._file()
        while len(view):
            done = os.preadv(file.number, [view], offset)
            if not done:
                raise OSError(f"{self.stem.name}{ROWS} ends before row {start + len(out)}")
            view, offset = view[done:], offset + done

    def rows(self, numbers: npt.NDArray[np.int64]) -> Vectors:
        """Single rows from the memory map."""
        mapped = self._mapped
        if mapped is None or len(mapped) <= int(numbers.max()):
            flat = np.memmap(self.stem.with_name(self.stem.name + ROWS), dtype="<f4", mode="r")
            mapped = flat[: len(flat) // self.dimensions * self.dimensions].reshape(-1, self.dimensions)
            self._mapped = mapped
        _keep_open(self)
        return np.asarray(mapped[numbers])

    @property
    def dimensions(self) -> int:
        """The length of its rows."""
        assert self.description is not None
        return self.description.dimensions

    def row_bytes(self) -> int:
        """The size of the rows' file."""
        with contextlib.suppress(OSError):
            return self.stem.with_name(self.stem.name + ROWS).stat().st_size
        return 0

    def close(self) -> None:
        """Closes the files. Current readers keep them until they are done."""
        self._mapped = self._handle = None

    def _file(self) -> _Handle:
        handle = self._handle
        if handle is None:
            handle = self._handle = _Handle(self.stem.with_name(self.stem.name + ROWS))
        _keep_open(self)
        return handle

    def _rows_file(self) -> _Handle | None:
        with contextlib.suppress(OSError):
            return self._file()
        return None

    def _read_head(self, data: bytes) -> int:
        if len(data) < _HEAD.size:
            return 0
        magic, length, check = _HEAD.unpack_from(data)
        text = data[_HEAD.size : _HEAD.size + length]
        if magic != _HEAD_MAGIC or checksum(text) != check:
            return 0  # being written, or damaged: without a dimension, the rows are just bytes
        with contextlib.suppress(msgspec.DecodeError):
            self.description = msgspec.json.decode(text, type=Description)
        return _HEAD.size + int(length)

    def _sound(self, start: int, rows: int, expected: int, window: _Window) -> bool:
        """Whether the rows match their checksum."""
        part = window.bytes(start * self.dimensions * 4, (start + rows) * self.dimensions * 4)
        return part is not None and checksum(part) == expected


class _Handle:
    """A file open for reading, closed on garbage collection."""

    __slots__ = ("number",)

    def __init__(self, path: Path) -> None:
        self.number = -1
        self.number = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))

    def __del__(self) -> None:
        if self.number >= 0:
            os.close(self.number)


_open: dict[int, weakref.ref[Shard]] = {}  # most recently read last
_open_lock = threading.Lock()


def _keep_open(shard: Shard) -> None:
    """Marks this shard as being read. The least recently read one closes its files."""
    with _open_lock:
        _open.pop(id(shard), None)
        _open[id(shard)] = weakref.ref(shard)
        oldest = _open.pop(next(iter(_open)))() if len(_open) > _OPEN_AT_ONCE else None
    if oldest is not None:
        oldest.close()


class _Window:
    """The part of a file being checked, mapped without a copy and released afterwards."""

    def __init__(self, handle: int | None) -> None:
        self._handle = handle
        self._size = 0 if handle is None else os.fstat(handle).st_size
        self._start = self._stop = 0
        self._view = memoryview(b"")

    def bytes(self, start: int, stop: int) -> memoryview | None:
        """This part; None if the file is shorter."""
        if stop > self._size or self._handle is None:
            return None
        if start == stop:
            return memoryview(b"")
        if not self._start <= start <= stop <= self._stop:
            self._start = start - start % mmap.ALLOCATIONGRANULARITY
            self._stop = min(self._size, max(stop, self._start + _MAPPED_AT_ONCE))
            length = self._stop - self._start
            mapped = mmap.mmap(self._handle, length, access=mmap.ACCESS_READ, offset=self._start)
            self._view = memoryview(mapped)  # releases the previous part with its view
        return self._view[start - self._start : stop - self._start]


ROW_BITS = 40  # a place is the shard's number above, the row below
_CACHE_LINE = 64  # bytes
_SCATTERED = 8  # shorter runs of consecutive rows, on average, are read one by one


@dataclass(frozen=True, slots=True)
class ShardRows:
    """Shards in the order that places refer to."""

    shards: Sequence[Shard]
    dimensions: int

    def take(self, places: Places) -> Vectors:
        """The vectors at these places, as the provider returned them."""
        vectors = _allocate(len(places), self.dimensions)
        breaks = np.flatnonzero(places[1:] - places[:-1] != 1) + 1
        if len(places) < _SCATTERED * (len(breaks) + 1):
            self._pick(places, vectors)
            return vectors
        for start, stop in itertools.pairwise([0, *breaks.tolist(), len(places)]):
            shard, row = divmod(int(places[start]), 1 << ROW_BITS)
            self.shards[shard].read(row, vectors[start:stop])
        return vectors

    def _pick(self, places: Places, vectors: Vectors) -> None:
        """Row by row, shard by shard, in file order, so that each page is touched once."""
        order = np.argsort(places, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(places[order] >> ROW_BITS)) + 1):
            if len(group):
                shard = self.shards[int(places[group[0]]) >> ROW_BITS]
                vectors[group] = shard.rows(places[group] & ((1 << ROW_BITS) - 1))


def _allocate(rows: int, dimensions: int) -> Vectors:
    """An array aligned to cache lines, into which file pages are copied a third faster."""
    room = np.empty(rows * dimensions + _CACHE_LINE // 4, dtype=np.float32)
    start = -room.ctypes.data % _CACHE_LINE // 4
    return room[start : start + rows * dimensions].reshape(rows, dimensions)
