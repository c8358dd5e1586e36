"""Files of bare vectors (NumPy or FAISS). The ids are in `NAME.ids.jsonl`, one line per row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from bakeoff_providers.arrays import map_array
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError
from bakeoff_providers.files import replacing

from bakeoff.calls.key_index import Keys, keys_from, keys_of
from bakeoff.core.files import read_json_lines
from bakeoff.core.hashing import Identity
from bakeoff.extensions.vectors.files import (
    FileContents,
    PackedIds,
    VectorBlock,
    VectorFile,
    as_float32,
    hex_of,
    keys_from_hex,
)

SUFFIX = ".ids.jsonl"
_AT_ONCE = 8_192  # lines decoded at once


class _Line(msgspec.Struct, omit_defaults=True):
    """One row. The first line may hold the identity of all rows."""

    id: str | int | None = None
    text_hash: str | None = None
    text: str | None = None
    tokens: float | None = None
    identity: dict[str, str | int | float | bool | None] | None = None


def sidecar_of(path: Path) -> Path:
    """The file that holds the ids."""
    return path.with_suffix(SUFFIX)


def lines(identity: Identity, block: VectorBlock | None) -> bytes:
    """The identity's line, or the lines of a block."""
    if block is None:
        return msgspec.json.encode(_Line(identity=dict(identity))) + b"\n"
    rows = zip(block.ids, hex_of(block.keys), block.tokens.tolist(), strict=True)
    return b"".join(msgspec.json.encode(_Line(id=name, text_hash=key, tokens=paid)) + b"\n" for name, key, paid in rows)


def read_sidecar(file: VectorFile, rows: int, dimensions: int) -> FileContents:
    """Read the ids with hashes or texts. There must be one per vector; a line may be an id alone."""
    path = sidecar_of(file.path)
    if not path.is_file():
        raise InputError(
            "no such file",
            file=path,
            remedy='the ids of the rows, one line each: "d1", or {"id": "d1", "text_hash": "…"}',
        )
    identity: Identity | None = None
    known = _Rows(file)
    block: list[_Line] = []
    for number, line in read_json_lines(path, str | int | _Line):  # type: ignore[arg-type]  # a union is a type, too
        entry = line if isinstance(line, _Line) else _Line(id=line)
        if entry.identity is not None and not block and not known.ids:
            identity = entry.identity
        elif entry.id is None:
            raise InputError("has no id", file=path, place=f"line {number}")
        else:
            block.append(entry)
            if len(block) == _AT_ONCE:
                known.add(block)
                block = []
    known.add(block)
    if len(known.ids) != rows:
        count = len(known.ids)
        raise InputError(f"{count} ids for {rows} vectors", file=path, remedy="one line per row, in their order")
    return FileContents(known.ids, dimensions, known.keys(), np.frombuffer(known.tokens, dtype=np.float32), identity)


class _Rows:
    """The lines as arrays. Hashes and texts count only if every line has them."""

    def __init__(self, file: VectorFile) -> None:
        self.ids, self.tokens = PackedIds(), bytearray()
        self._file = file
        self._hashed: bytearray | None = bytearray()
        self._texts: bytearray | None = bytearray()
        self._wrong: InputError | None = None  # an invalid hash

    def add(self, block: list[_Line]) -> None:
        """Append lines."""
        if self._hashed is not None and self._wrong is None:
            hashes = [entry.text_hash for entry in block if entry.text_hash is not None]
            try:
                self._hashed += keys_from_hex(self._file, hashes, len(self.ids)).tobytes()
            except InputError as error:
                self._wrong = error
        if any(entry.text_hash is None for entry in block):
            self._hashed = None
        if any(entry.text is None for entry in block):
            self._texts = None
        elif self._texts is not None:
            self._texts += keys_of(entry.text or "" for entry in block).tobytes()
        self.tokens += np.array([entry.tokens or 0.0 for entry in block], dtype=np.float32).tobytes()
        self.ids.extend(str(entry.id) for entry in block)

    def keys(self) -> Keys | None:
        """Keys from the hashes, else from the texts."""
        if self._hashed is not None and self._wrong is not None:
            raise self._wrong
        raw = self._hashed if self._hashed is not None else self._texts
        return keys_from(memoryview(raw)) if raw else None


def write_sidecar(part: Path, identity: Identity, blocks: Iterable[VectorBlock]) -> Iterable[VectorBlock]:
    """Pass the blocks on while writing their lines."""
    with part.open("wb") as out:
        out.write(lines(identity, None))
        for block in blocks:
            out.write(lines(identity, block))
            yield block


_ROWS = 8_192  # in memory at once


class Npy(VectorFile):
    """`NAME.npy` of rows × dimensions, and `NAME.ids.jsonl`."""

    name = "npy"

    def _matrix(self) -> Any:
        matrix = map_array(self.path)
        if matrix.ndim != 2 or matrix.dtype.kind != "f":
            raise self.wrong(f"holds {matrix.dtype} of shape {matrix.shape}, not a matrix of floats")
        return matrix

    def contents(self) -> FileContents:
        """Read from the sidecar."""
        matrix = self._matrix()
        return read_sidecar(self, *matrix.shape)

    def vectors(self) -> Iterator[Vectors]:
        """Read block by block."""
        matrix = self._matrix()
        for first in range(0, len(matrix), _ROWS):
            yield as_float32(self, np.asarray(matrix[first : first + _ROWS]), first)

    def write(self, identity: Identity, dimensions: int, blocks: Iterable[VectorBlock], rows: int) -> None:
        """Write both files, and rename the ids last."""
        with replacing(sidecar_of(self.path)) as ids, replacing(self.path) as part:
            matrix = np.lib.format.open_memmap(part, mode="w+", dtype="<f4", shape=(rows, dimensions))
            at = 0
            for block in write_sidecar(ids, identity, blocks):
                matrix[at : at + len(block.vectors)] = block.vectors
                at += len(block.vectors)
            matrix.flush()
            del matrix


class FaissFile(VectorFile):
    """`NAME.faiss` and `NAME.ids.jsonl`, in the order in which the vectors were added. Written as a flat index."""

    name = "faiss"
    modules = ("faiss",)
    _opened: Any = None

    def _index(self) -> Any:
        """The index, read once."""
        if self._opened is None:
            self._opened = self._read()
        return self._opened

    def _read(self) -> Any:
        import faiss

        if not self.path.is_file():
            raise self.wrong("no such file", remedy="check the path")
        try:
            # Read, not mapped: a damaged length makes FAISS read beyond the end of a mapped file and crash.
            self._whole = faiss.read_index(str(self.path))  # keeps its parts alive
            index = faiss.downcast_index(self._whole)
        except (RuntimeError, MemoryError) as error:  # a damaged length requests too much memory
            raise self.wrong(f"is not readable as a FAISS index ({str(error).splitlines()[0]})") from None
        if isinstance(index, faiss.IndexIDMap):
            index = faiss.downcast_index(index.index)
        if isinstance(index, faiss.IndexIVFFlat):
            index.make_direct_map()
        elif isinstance(index, faiss.IndexHNSWFlat):
            index = faiss.downcast_index(index.storage)
        elif not isinstance(index, faiss.IndexFlat):
            raise self.wrong(
                f"a {type(index).__name__} holds codes, not the vectors themselves",
                remedy="export from a Flat, HNSW…,Flat or IVF…,Flat index",
            )
        return index

    def contents(self) -> FileContents:
        """Read from the sidecar."""
        index = self._index()
        return read_sidecar(self, int(index.ntotal), int(index.d))

    def vectors(self) -> Iterator[Vectors]:
        """In row order."""
        index = self._index()
        for first in range(0, int(index.ntotal), _ROWS):
            yield np.asarray(index.reconstruct_n(first, min(_ROWS, int(index.ntotal) - first)), dtype=np.float32)

    def write(self, identity: Identity, dimensions: int, blocks: Iterable[VectorBlock], rows: int) -> None:
        """Write a flat inner-product index, the only type that keeps every bit."""
        import faiss

        with replacing(sidecar_of(self.path)) as ids, replacing(self.path) as part:
            index = faiss.IndexFlatIP(dimensions)
            index.codes.resize(rows * index.code_size)
            index.codes.resize(0)
            for block in write_sidecar(ids, identity, blocks):
                index.add(np.ascontiguousarray(block.vectors, dtype=np.float32))
            faiss.write_index(index, str(part))
