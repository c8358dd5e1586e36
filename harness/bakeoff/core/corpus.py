"""Documents that are too many for memory: their ids stay, their texts are in a file until they are needed."""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, overload

import msgspec

from bakeoff.core.task import Document

IN_MEMORY = 64 << 20  # bytes of documents that are simply kept
_READ = 1 << 20  # bytes that are read at once

Change = Callable[[Document], Document]


class StoredDocuments(Sequence[Document]):
    """Documents in a temporary file without a name, which is gone when the process is, however it ends."""

    def __init__(self, file: IO[bytes], ids: list[str], ends: array[int], change: Change | None = None) -> None:
        self.ids = ids
        self._file, self._ends, self._change = file, ends, change
        self._decode = msgspec.msgpack.Decoder(Document).decode

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> Document: ...

    @overload
    def __getitem__(self, place: slice) -> list[Document]: ...

    def __getitem__(self, place: int | slice) -> Document | list[Document]:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            if step == 1:
                return list(self._between(start, stop))
            return [self[number] for number in range(start, stop, step)]
        number = range(len(self))[place]
        return next(self._between(number, number + 1))

    def __iter__(self) -> Iterator[Document]:
        return self._between(0, len(self))

    def changed(self, change: Change) -> StoredDocuments:
        """The same documents, each put through one more step when it is read; ids must stay."""
        earlier = self._change
        both = change if earlier is None else lambda document: change(earlier(document))
        return StoredDocuments(self._file, self.ids, self._ends, both)

    def _between(self, start: int, stop: int) -> Iterator[Document]:
        """In parts of about a megabyte, by place in the file, so that several readers do not disturb each other."""
        while start < stop:
            begin = self._ends[start - 1] if start else 0
            last = start + 1
            while last < stop and self._ends[last] - begin <= _READ:
                last += 1
            data = memoryview(os.pread(self._file.fileno(), self._ends[last - 1] - begin, begin))
            for number in range(start, last):
                end = self._ends[number] - begin
                document = self._decode(data[:end] if number == start else data[self._ends[number - 1] - begin : end])
                yield document if self._change is None else self._change(document)
            start = last


def collected(documents: Iterable[Document]) -> Sequence[Document]:
    """As a list while they fit into memory, in a file from there on."""
    kept: list[Document] = []
    size = 0
    rest = iter(documents)
    for document in rest:
        kept.append(document)
        size += len(document.text) + len(document.title) + 200
        if size > IN_MEMORY:
            return _stored(kept, rest)
    return kept


def _stored(first: list[Document], rest: Iterable[Document]) -> StoredDocuments:
    file = tempfile.TemporaryFile(prefix="bakeoff-")  # noqa: SIM115 - it lives as long as the documents
    encode = msgspec.msgpack.Encoder().encode
    ids: list[str] = []
    ends = array("q")
    end = 0
    for source in (first, rest):
        for document in source:
            end += file.write(encode(document))
            ids.append(document.id)
            ends.append(end)
        first.clear()
    file.flush()
    return StoredDocuments(file, ids, ends)


def changed(documents: Sequence[Document], change: Change) -> Sequence[Document]:
    """Every document put through a step that keeps its id."""
    return documents.changed(change) if isinstance(documents, StoredDocuments) else list(map(change, documents))
