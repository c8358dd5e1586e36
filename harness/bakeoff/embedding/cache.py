"""Vectors on disk: paid for once, kept batch by batch, safe against a kill and against a second process.

A space (everything that shapes a vector but its text) is a folder of append-only segments. Each process writes a
segment of its own, one checksummed record a batch: readers need no lock, and a torn record costs nothing but itself.
"""

from __future__ import annotations

import os
import secrets
import shutil
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from bakeoff_providers.base import Vectors

from bakeoff.core.files import read_json, write_json
from bakeoff.core.hashing import KEY_BYTES, Identity, space_name, text_key

_MAGIC = b"BKV1"
_HEADER = struct.Struct("<4sIIII")  # magic, rows, dimensions, crc of the body, crc of this header so far
_IDENTITY = "identity.json"
_RECORD = 1024  # vectors in a record that pruning writes


@dataclass(frozen=True, slots=True)
class SpaceInfo:
    """What `bakeoff cache info` shows of one space."""

    name: str
    identity: Identity
    vectors: int
    damaged: int
    size_bytes: int


class Space:
    """The vectors of one identity. Read when opened; what is put is found at once and is on disk when put returns."""

    def __init__(self, folder: Path, identity: Identity) -> None:
        self.folder, self.identity = folder, dict(identity)
        self.damaged = 0
        self._places: dict[bytes, int] = {}  # a key's row, counted over all records
        self._starts: list[int] = []
        self._rows = 0
        self._vectors: list[Vectors] = []
        self._tokens: list[npt.NDArray[np.float32]] = []
        self._segment: BinaryIO | None = None
        for segment in sorted(folder.glob("*.seg")):
            self._read(segment)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, text: str) -> bool:
        return text_key(text) in self._places

    def get(self, texts: Sequence[str]) -> tuple[Vectors, float]:
        """The vectors of texts that are all here, and the tokens that were paid for them."""
        places = np.array([self._places[text_key(text)] for text in texts])
        record = np.searchsorted(self._starts, places, side="right") - 1
        row = places - np.array(self._starts)[record]
        vectors = np.empty((len(texts), self._vectors[record[0]].shape[1]), dtype=np.float32)
        tokens = 0.0
        order = np.argsort(record, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(record[order])) + 1):  # one copy for each record
            target, source, number = _span(group), _span(row[group]), record[group[0]]
            vectors[target] = self._vectors[number][source]
            tokens += float(self._tokens[number][source].sum())
        return vectors, tokens

    def put(self, texts: Sequence[str], vectors: Vectors, tokens: int | None) -> None:
        """Appends one record. Tokens are reported for a batch; each text is charged by its length."""
        lengths = np.array([max(len(text), 1) for text in texts], dtype=np.float64)
        shares = (lengths / lengths.sum() * (tokens or 0)).astype("<f4")
        keys = b"".join(text_key(text) for text in texts)
        rows = np.ascontiguousarray(vectors, dtype="<f4")
        self._append(keys, shares, rows)
        self._remember(keys, shares, rows)

    def _append(self, keys: bytes, shares: npt.NDArray[np.float32], rows: Vectors) -> None:
        body = (keys, shares.tobytes(), rows.data)
        crc = 0
        for part in body:
            crc = zlib.crc32(part, crc)
        header = struct.pack("<4sIII", _MAGIC, *rows.shape, crc)
        if self._segment is None:
            if not (self.folder / _IDENTITY).exists():
                write_json(self.folder / _IDENTITY, self.identity)
            self._segment = (self.folder / f"{os.getpid()}-{secrets.token_hex(4)}.seg").open("xb", buffering=0)
            _locked(self._segment)  # held until it is closed: pruning leaves a live segment alone
        for part in (header + struct.pack("<I", zlib.crc32(header)), *body):
            self._segment.write(part)

    def rewrite(self) -> None:
        """Puts everything that is known into a segment of its own, each vector once."""
        keys = list(self._places)
        vectors, tokens = (
            np.concatenate(self._vectors or [np.empty((0, 0), "<f4")]),
            np.concatenate([*self._tokens, np.empty(0, "<f4")]),
        )
        for start in range(0, len(keys), _RECORD):
            part = keys[start : start + _RECORD]
            places = [self._places[key] for key in part]
            self._append(b"".join(part), tokens[places], vectors[places])
        self.close()

    def close(self) -> None:
        """Ends this process's segment."""
        if self._segment is not None:
            self._segment.close()
            self._segment = None

    def _remember(self, keys: bytes, tokens: npt.NDArray[np.float32], vectors: Vectors) -> None:
        start = self._rows
        self._vectors.append(vectors)
        self._tokens.append(tokens)
        self._starts.append(start)
        self._rows += len(vectors)
        names = [keys[at : at + KEY_BYTES] for at in range(0, len(keys), KEY_BYTES)]
        self._places.update(zip(names, range(start, self._rows), strict=True))

    def _read(self, segment: Path) -> None:
        data = np.fromfile(segment, dtype=np.uint8).data  # not bytes: its rows are used where they lie
        place = 0
        while place + _HEADER.size <= len(data):
            magic, rows, dimensions, body_crc, header_crc = _HEADER.unpack_from(data, place)
            end = place + _HEADER.size + rows * (KEY_BYTES + 4 + 4 * dimensions)
            if magic != _MAGIC or zlib.crc32(data[place : place + _HEADER.size - 4]) != header_crc or end > len(data):
                self.damaged += 1
                following = bytes(data).find(_MAGIC, place + 1)  # the record after a damaged header may be sound
                if following < 0:
                    return
                place = following
                continue
            body = data[place + _HEADER.size : end]
            if zlib.crc32(body) == body_crc:
                keys = bytes(body[: rows * KEY_BYTES])
                numbers = np.frombuffer(body[rows * KEY_BYTES :], dtype="<f4")
                self._remember(keys, numbers[:rows], numbers[rows:].reshape(rows, dimensions))
            else:
                self.damaged += 1
            place = end
        self.damaged += place < len(data)


def _span(rows: npt.NDArray[np.intp]) -> slice | npt.NDArray[np.intp]:
    """Consecutive rows as a slice, which is copied several times faster than rows picked one by one."""
    first, last = int(rows[0]), int(rows[-1])
    return slice(first, last + 1) if last - first == len(rows) - 1 and (np.diff(rows) == 1).all() else rows


def _locked(file: BinaryIO) -> bool:
    """Takes the file's lock if nobody holds it. Where the system has none, segments are never pruned."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


class VectorCache:
    """All spaces under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def space(self, identity: Identity) -> Space:
        """The space of this identity, made if it is new."""
        return Space(self.folder / space_name(identity), identity)

    def spaces(self) -> Iterator[SpaceInfo]:
        """What there is, for the user to see and to clear."""
        for description in sorted(self.folder.glob(f"*/{_IDENTITY}")):
            identity = _read_identity(description)
            space = Space(description.parent, identity)
            size = sum(file.stat().st_size for file in description.parent.iterdir())
            yield SpaceInfo(description.parent.name, identity, len(space), space.damaged, size)

    def prune(self) -> int:
        """Rewrites every space as one segment without damaged or duplicate records; returns the bytes freed."""
        freed = 0
        for description in sorted(self.folder.glob(f"*/{_IDENTITY}")):
            freed += _pruned(description.parent, _read_identity(description))
        return freed

    def clear(self) -> int:
        """Deletes everything; returns the bytes freed."""
        size = sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())
        shutil.rmtree(self.folder, ignore_errors=True)
        return size


def _read_identity(file: Path) -> Identity:
    return read_json(file, dict[str, str | int | float | bool | None])


def _pruned(folder: Path, identity: Identity) -> int:
    segments = sorted(folder.glob("*.seg"))
    open_files = [segment.open("rb") for segment in segments]
    try:
        if not segments or not all(_locked(file) for file in open_files):
            return 0  # somebody is writing here
        before = sum(segment.stat().st_size for segment in segments)
        space = Space(folder, identity)
        space.rewrite()
        for segment in segments:
            segment.unlink()
        return before - sum(segment.stat().st_size for segment in folder.glob("*.seg"))
    finally:
        for file in open_files:
            file.close()
