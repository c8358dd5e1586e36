"""Vector files of other tools: rows of ids, text hashes, tokens and vectors.

A format is a class here and one line below, by its suffix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.needs import Plugin
from bakeoff_providers.registry import Registry

from bakeoff.calls.key_index import Keys, keys_from
from bakeoff.core.hashing import KEY_BYTES, Identity
from bakeoff.core.lazy_sequence import LazySequence
from bakeoff.embedding.shards import Tokens

ID, TEXT, TEXT_HASH, TOKENS, VECTOR = "id", "text", "text_hash", "tokens", "vector"
COLUMNS = (ID, TEXT, TEXT_HASH, TOKENS, VECTOR)


class VectorBlock(NamedTuple):
    """Consecutive rows to write."""

    ids: list[str]
    keys: Keys
    tokens: Tokens
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class FileContents:
    """A file's contents except the vectors. Missing columns are None."""

    ids: Sequence[str]
    dimensions: int
    keys: Keys | None = None
    tokens: Tokens | None = None
    identity: Identity | None = None


class VectorFile(Plugin, ABC):
    """One file (or folder) of vectors. Libraries are imported inside the methods that need them."""

    name: ClassVar[str]

    def __init__(self, path: Path, columns: Mapping[str, str]) -> None:
        self.path = path
        if unknown := set(columns) - set(COLUMNS):
            raise InputError(
                f"there is no column {sorted(unknown)[0]!r}", place="--column", remedy=f"known: {', '.join(COLUMNS)}"
            )
        self.columns = {column: columns.get(column, column) for column in COLUMNS}

    @abstractmethod
    def contents(self) -> FileContents:
        """Everything but the vectors."""

    @abstractmethod
    def vectors(self) -> Iterator[Vectors]:
        """All vectors in file order as float32, in blocks of some thousands."""

    @abstractmethod
    def write(self, identity: Identity, dimensions: int, blocks: Iterable[VectorBlock], rows: int) -> None:
        """Write a new file atomically."""

    def wrong(self, problem: str, row: int | None = None, remedy: str = "") -> InputError:
        """An error at a row of this file. Rows count from 1."""
        return InputError(problem, file=self.path, place="" if row is None else f"row {row + 1}", remedy=remedy)


def hex_of(keys: Keys) -> list[str]:
    """Hashes as hexadecimal text."""
    raw = keys.astype("<u8").tobytes()
    return [raw[at : at + KEY_BYTES].hex() for at in range(0, len(raw), KEY_BYTES)]


def keys_from_hex(file: VectorFile, hashes: Iterable[str | None], first: int = 0) -> Keys:
    """Parse hashes. An invalid one raises an error that names its row."""
    parts = []
    for row, text in enumerate(hashes, start=first):
        try:
            part = bytes.fromhex(text or "")
        except ValueError:
            part = b""
        if len(part) != KEY_BYTES:
            raise file.wrong(f"text_hash {text!r} is not {2 * KEY_BYTES} hexadecimal digits", row)
        parts.append(part)
    return keys_from(b"".join(parts))


def as_float32(file: VectorFile, vectors: np.ndarray, first: int) -> Vectors:
    """Convert to float32. A value beyond its range raises an error that names its row."""
    if vectors.dtype == np.float32:
        return np.asarray(vectors)
    with np.errstate(over="ignore"):
        narrow = vectors.astype(np.float32)
    lost = np.isfinite(vectors).all(axis=1) & ~np.isfinite(narrow).all(axis=1)
    if lost.any():
        raise file.wrong("a number is too large for float32", first + int(np.flatnonzero(lost)[0]))
    return np.asarray(narrow)


class PackedIds(LazySequence[str]):
    """A compact list of ids: the bytes of each plus 8. Strings are made on access."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._bytes = bytearray()
        self._ends = array("q")
        self.extend(names)

    def extend(self, names: Iterable[str]) -> None:
        """Append ids, best in blocks of some thousands."""
        encoded = [name.encode("utf-8", "surrogatepass") for name in names]
        self._ends.extend(islice(accumulate(map(len, encoded), initial=len(self._bytes)), 1, None))
        self._bytes += b"".join(encoded)

    def __len__(self) -> int:
        return len(self._ends)

    def _between(self, start: int, stop: int) -> Iterator[str]:
        return map(self._at, range(start, stop))

    def _at(self, number: int) -> str:
        start = self._ends[number - 1] if number else 0
        return self._bytes[start : self._ends[number]].decode("utf-8", "surrogatepass")


BUILTIN = {
    "parquet": "bakeoff.extensions.vectors.files.arrow:Parquet",
    "lance": "bakeoff.extensions.vectors.files.arrow:Lance",
    "npy": "bakeoff.extensions.vectors.files.matrices:Npy",
    "faiss": "bakeoff.extensions.vectors.files.matrices:FaissFile",
}

VECTOR_FILES: Registry[VectorFile] = Registry("format of vectors", "bakeoff.vector_files", BUILTIN)


def vector_file(path: Path, columns: dict[str, str] | None = None) -> VectorFile:
    """The file for this suffix. A missing library raises an error that names it."""
    suffix = path.suffix.removeprefix(".")
    if suffix not in VECTOR_FILES.names():
        known = ", ".join(f".{name}" for name in VECTOR_FILES.names())
        raise InputError(f"its name ends with none of {known}", file=path, remedy="name it by what is in it")
    kind = VECTOR_FILES.get(suffix)
    if reason := kind.missing():
        raise Unavailable(f"{path.name}: {reason}")
    return VECTOR_FILES.create(suffix, path=path, columns=columns or {})
