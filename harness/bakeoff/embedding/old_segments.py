"""Caches of earlier versions: segments that mix keys, tokens and rows. Read once, to be written again as a shard."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from bakeoff_providers.base import Vectors

from bakeoff.core.hashing import KEY_BYTES
from bakeoff.embedding.shards import Tokens

SUFFIX = ".seg"
_MAGIC = b"BKV1"
_HEADER = struct.Struct("<4sIIII")  # magic, rows, dimensions, crc of the body, crc of this header so far


def old_batches(segment: Path) -> Iterator[tuple[bytes, Tokens, Vectors]]:
    """Its sound records: keys, tokens, rows."""
    data = np.memmap(segment, dtype=np.uint8, mode="r") if segment.stat().st_size else np.empty(0, np.uint8)
    place = 0
    while place + _HEADER.size <= len(data):
        head = data[place : place + _HEADER.size].tobytes()
        magic, rows, dimensions, body_crc, header_crc = _HEADER.unpack(head)
        end = place + _HEADER.size + rows * (KEY_BYTES + 4 + 4 * dimensions)
        if magic != _MAGIC or zlib.crc32(head[:-4]) != header_crc or end > len(data):
            following = data[place + 1 :].tobytes().find(_MAGIC)  # the record after a damaged header may be sound
            if following < 0:
                return
            place += 1 + following
            continue
        body = data[place + _HEADER.size : end].tobytes()
        if zlib.crc32(body) == body_crc:
            numbers = np.frombuffer(body, dtype="<f4", offset=rows * KEY_BYTES)
            yield body[: rows * KEY_BYTES], numbers[:rows], numbers[rows:].reshape(rows, dimensions)
        place = end
