"""Documents that are too many for memory: their ids stay, their texts are in a file until they are needed."""

from __future__ import annotations

import os
import struct
import tempfile
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice
from typing import IO, overload

import msgspec

from bakeoff.core.files import explain_full_disk
from bakeoff.core.task import Document

IN_MEMORY = 64 << 20  # bytes of documents that are simply kept
_READ = 1 << 20  # bytes that are read at once
_ARRAY = struct.Struct(">BI")  # MessagePack's head of an array

Change = Callable[[Document], Document]


class StoredDocuments(Sequence[Document]):
    """Documents in a temporary file without a name, which is gone when the process is, however it ends."""

    def __init__(
        self, file: IO[bytes], ids: list[str], ends: array[int], change: Change | None = None, *, plain: bool = False
    ) -> None:
        self.ids, self.plain = ids, plain  # plain: none has metadata
        self._file, self._ends, self._change = file, ends, change
        self._decode = msgspec.msgpack.Decoder(list[Document]).decode

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

    def transform(self, change: Change) -> StoredDocuments:
        """The same documents, each put through one more step when it is read; ids and metadata must stay."""
        earlier = self._change
        both = change if earlier is None else lambda document: change(earlier(document))
        return StoredDocuments(self._file, self.ids, self._ends, both, plain=self.plain)

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[list[Document]]:
        """In parts of about a megabyte, by place in the file, so that several readers do not disturb each other."""
        stop = len(self) if stop is None else stop
        while start < stop:
            begin = self._ends[start - 1] if start else 0
            last = max(start + 1, bisect_right(self._ends, begin + _READ, start, stop))
            data = os.pread(self._file.fileno(), self._ends[last - 1] - begin, begin)
            documents = self._decode(_ARRAY.pack(0xDD, last - start) + data)  # one array of all that is in this part
            yield documents if self._change is None else list(map(self._change, documents))
            start = last

    def _between(self, start: int, stop: int) -> Iterator[Document]:
        return chain.from_iterable(self.blocks(start, stop))


def collect_documents(blocks: Iterable[list[Document]]) -> Sequence[Document]:
    """As a list while they fit into memory, in a file from there on."""
    kept: list[Document] = []
    size = 0
    rest = iter(blocks)
    for block in rest:
        kept += block
        size += sum(map(_about, block))
        if size > IN_MEMORY:
            return _store(kept, rest)
    return kept


def _about(document: Document) -> int:
    """Bytes that a document takes, roughly: its texts, and an object for each field."""
    size = len(document.text) + len(document.title) + 200
    if document.fields:
        size += sum(len(text) + 100 for text in document.fields.values())
    if document.metadata:
        size += sum(100 + (len(value) if isinstance(value, str) else 0) for value in document.metadata.values())
    return size


def _store(first: list[Document], rest: Iterable[list[Document]]) -> StoredDocuments:
    with explain_full_disk():
        file = tempfile.TemporaryFile(prefix="bakeoff-")  # noqa: SIM115 - it lives as long as the documents
    encode = msgspec.msgpack.Encoder().encode
    ids: list[str] = []
    ends = array("q")
    plain = True
    for block in chain([first], rest):
        encoded = list(map(encode, block))
        start = ends[-1] if ends else 0
        ends.extend(islice(accumulate(map(len, encoded), initial=start), 1, None))
        with explain_full_disk():
            file.write(b"".join(encoded))
        ids += [document.id for document in block]
        plain = plain and not any(document.metadata for document in block)
        block.clear()
    with explain_full_disk():
        file.flush()
    return StoredDocuments(file, ids, ends, plain=plain)


def transform_documents(documents: Sequence[Document], change: Change) -> Sequence[Document]:
    """Every document put through a step that keeps its id and its metadata."""
    return documents.transform(change) if isinstance(documents, StoredDocuments) else list(map(change, documents))
