"""Vectors on disk: paid for once, kept batch by batch, safe against a kill and against a second process.

A space (everything that shapes a vector but its text) is a folder of append-only segments. Each process writes a
segment of its own, one checksummed record a batch: nothing needs a lock, and a torn or damaged record costs itself only.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
import numpy.typing as npt

from harness.files import read_json, write_json
from providers.base import Vectors

_MAGIC = b"BKV1"
_HEADER = struct.Struct("<4sIIII")  # magic, rows, dimensions, crc of the body, crc of this header so far
_KEY = 16
Identity = Mapping[str, str | int | float | bool | None]


def text_key(text: str) -> bytes:
    """A text's name within its space."""
    return hashlib.blake2b(text.encode(), digest_size=_KEY).digest()


def space_name(identity: Identity) -> str:
    """A space's folder: a hash of everything besides the text that changes a vector."""
    return hashlib.sha256(msgspec.json.encode(dict(sorted(identity.items())))).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class SpaceInfo:
    """What `bakeoff cache info` tells of one space."""

    name: str
    identity: dict[str, str | int | float | bool | None]
    vectors: int
    damaged: int
    size_bytes: int


class Space:
    """The vectors of one identity. Read when opened; what is put is found at once and is on disk when put returns."""

    def __init__(self, folder: Path, identity: Identity) -> None:
        self.folder = folder
        self.damaged = 0
        self._places: dict[bytes, tuple[int, int]] = {}
        self._vectors: list[Vectors] = []
        self._tokens: list[npt.NDArray[np.float32]] = []
        self._segment: BinaryIO | None = None
        if not folder.exists():
            write_json(folder / "identity.json", dict(identity))
        for segment in sorted(folder.glob("*.seg")):
            self._read(segment)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, text: str) -> bool:
        return text_key(text) in self._places

    def get(self, texts: Sequence[str]) -> tuple[Vectors, float]:
        """The vectors of texts that are all here, and the tokens that were paid for them."""
        places = [self._places[text_key(text)] for text in texts]
        vectors = np.stack([self._vectors[record][row] for record, row in places])
        return vectors, float(sum(self._tokens[record][row] for record, row in places))

    def put(self, texts: Sequence[str], vectors: Vectors, tokens: int | None) -> None:
        """Appends one record. Tokens are reported for a batch; each text is charged by its length."""
        lengths = np.array([max(len(text), 1) for text in texts], dtype=np.float64)
        shares = (lengths / lengths.sum() * (tokens or 0)).astype("<f4")
        keys = b"".join(text_key(text) for text in texts)
        rows = np.ascontiguousarray(vectors, dtype="<f4")
        body = keys + shares.tobytes() + rows.tobytes()
        header = struct.pack("<4sIII", _MAGIC, *rows.shape, zlib.crc32(body))
        if self._segment is None:
            self._segment = (self.folder / f"{os.getpid()}-{secrets.token_hex(4)}.seg").open("xb", buffering=0)
        self._segment.write(header + struct.pack("<I", zlib.crc32(header)) + body)
        self._learn(keys, shares, rows)

    def close(self) -> None:
        """Ends this process's segment."""
        if self._segment is not None:
            self._segment.close()
            self._segment = None

    def _learn(self, keys: bytes, tokens: npt.NDArray[np.float32], vectors: Vectors) -> None:
        record = len(self._vectors)
        self._vectors.append(vectors)
        self._tokens.append(tokens)
        self._places.update((keys[row * _KEY : (row + 1) * _KEY], (record, row)) for row in range(len(vectors)))

    def _read(self, segment: Path) -> None:
        data = segment.read_bytes()
        place = 0
        while place + _HEADER.size <= len(data):
            magic, rows, dimensions, body_crc, header_crc = _HEADER.unpack_from(data, place)
            end = place + _HEADER.size + rows * (_KEY + 4 + 4 * dimensions)
            if magic != _MAGIC or zlib.crc32(data[place : place + _HEADER.size - 4]) != header_crc or end > len(data):
                self.damaged += 1
                found = data.find(_MAGIC, place + 1)  # a damaged header: the next record may still be sound
                if found < 0:
                    return
                place = found
                continue
            body = memoryview(data)[place + _HEADER.size : end]
            if zlib.crc32(body) == body_crc:
                keys = bytes(body[: rows * _KEY])
                numbers = np.frombuffer(body[rows * _KEY :], dtype="<f4")
                self._learn(keys, numbers[:rows], numbers[rows:].reshape(rows, dimensions))
            else:
                self.damaged += 1
            place = end
        self.damaged += place < len(data)


class VectorCache:
    """All spaces under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def space(self, identity: Identity) -> Space:
        """The space of this identity, made if it is new."""
        return Space(self.folder / space_name(identity), identity)

    def spaces(self) -> Iterator[SpaceInfo]:
        """What there is, for the user to see and to clear."""
        for description in sorted(self.folder.glob("*/identity.json")):
            identity = read_json(description, dict[str, str | int | float | bool | None])
            space = Space(description.parent, identity)
            size = sum(file.stat().st_size for file in description.parent.iterdir())
            yield SpaceInfo(description.parent.name, identity, len(space), space.damaged, size)
