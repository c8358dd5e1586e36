"""Corpora larger than memory: ids are kept, texts stay in a temporary file."""

from __future__ import annotations

import os
import struct
import tempfile
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice
from typing import IO

import msgspec

from bakeoff.core.files import explain_full_disk
from bakeoff.core.task import Document, DocumentsOnDisk

IN_MEMORY = 64 << 20  # bytes of documents kept in memory
_READ = 1 << 20  # bytes per read
_ARRAY = struct.Struct(">BI")  # header of a MessagePack array

Change = Callable[[Document], Document]


class StoredDocuments(DocumentsOnDisk):
    """Documents in an unnamed temporary file, which the system removes when the process ends."""

    def __init__(
        self, file: IO[bytes], ids: list[str], ends: array[int], change: Change | None = None, *, plain: bool = False
    ) -> None:
        self.ids, self.plain = ids, plain
        self._file, self._ends, self._change = file, ends, change
        self._decode = msgspec.msgpack.Decoder(list[Document]).decode

    def transform(self, change: Change) -> StoredDocuments:
        """The same documents, each changed when it is read. `change` must keep ids and metadata."""
        earlier = self._change
        both = change if earlier is None else lambda document: change(earlier(document))
        return StoredDocuments(self._file, self.ids, self._ends, both, plain=self.plain)

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[list[Document]]:
        """Documents in blocks of about a megabyte. Reads are positional, so readers can share the file."""
        stop = len(self) if stop is None else stop
        while start < stop:
            begin = self._ends[start - 1] if start else 0
            last = max(start + 1, bisect_right(self._ends, begin + _READ, start, stop))
            data = os.pread(self._file.fileno(), self._ends[last - 1] - begin, begin)
            documents = self._decode(_ARRAY.pack(0xDD, last - start) + data)  # decoded as one array
            yield documents if self._change is None else list(map(self._change, documents))
            start = last

    def _between(self, start: int, stop: int) -> Iterator[Document]:
        return chain.from_iterable(self.blocks(start, stop))


def collect_documents(blocks: Iterable[list[Document]]) -> Sequence[Document]:
    """A list while the documents fit into memory, otherwise a file."""
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
    """Approximate size of a document in memory, in bytes."""
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
    """All documents, each changed by a function that keeps ids and metadata."""
    return documents.transform(change) if isinstance(documents, StoredDocuments) else list(map(change, documents))
