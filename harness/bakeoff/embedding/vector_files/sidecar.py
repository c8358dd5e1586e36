"""Ids beside a file that holds bare vectors: `NAME.ids.jsonl`, one line per row."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.files import read_json_lines
from bakeoff.core.hashing import Identity
from bakeoff.embedding.key_index import keys_of
from bakeoff.embedding.vector_files.base import Block, Contents, VectorFile, hex_of, keys_from_hex

SUFFIX = ".ids.jsonl"


class _Line(msgspec.Struct, omit_defaults=True):
    """A row, or (before the first) the identity that all rows share."""

    id: str | int | None = None
    text_hash: str | None = None
    text: str | None = None
    tokens: float | None = None
    identity: dict[str, str | int | float | bool | None] | None = None


def sidecar_of(path: Path) -> Path:
    """The file that holds the ids."""
    return path.with_suffix(SUFFIX)


def lines(identity: Identity, block: Block | None) -> bytes:
    """The identity's line, or those of a block."""
    if block is None:
        return msgspec.json.encode(_Line(identity=dict(identity))) + b"\n"
    rows = zip(block.ids, hex_of(block.keys), block.tokens.tolist(), strict=True)
    return b"".join(msgspec.json.encode(_Line(id=name, text_hash=key, tokens=paid)) + b"\n" for name, key, paid in rows)


def read_sidecar(file: VectorFile, rows: int, dimensions: int) -> Contents:
    """Ids with hashes or texts, as many as there are vectors; a line may be an id alone."""
    path = sidecar_of(file.path)
    if not path.is_file():
        raise InputError(
            "no such file",
            file=path,
            remedy='the ids of the rows, one line each: "d1", or {"id": "d1", "text_hash": "…"}',
        )
    identity: Identity | None = None
    entries: list[_Line] = []
    for number, line in read_json_lines(path, str | int | _Line):  # type: ignore[arg-type]  # a union is a type, too
        entry = line if isinstance(line, _Line) else _Line(id=line)
        if entry.identity is not None and not entries:
            identity = entry.identity
        elif entry.id is None:
            raise InputError("has no id", file=path, place=f"line {number}")
        else:
            entries.append(entry)
    if len(entries) != rows:
        raise InputError(f"{len(entries)} ids for {rows} vectors", file=path, remedy="one line per row, in their order")
    keys = None
    if entries and all(entry.text_hash is not None for entry in entries):
        keys = keys_from_hex(file, (entry.text_hash for entry in entries))
    elif entries and all(entry.text is not None for entry in entries):
        keys = keys_of(entry.text or "" for entry in entries)
    tokens = np.array([entry.tokens or 0.0 for entry in entries], dtype=np.float32)
    return Contents([str(entry.id) for entry in entries], dimensions, keys, tokens, identity)


def write_sidecar(part: Path, identity: Identity, blocks: Iterable[Block]) -> Iterable[Block]:
    """Passes the blocks on, and writes their lines on the way."""
    with part.open("wb") as out:
        out.write(lines(identity, None))
        for block in blocks:
            out.write(lines(identity, block))
            yield block
