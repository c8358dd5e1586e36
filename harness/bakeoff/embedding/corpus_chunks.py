"""The chunks of a corpus: stored if the documents are in memory, otherwise rebuilt when needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, islice

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.corpus import StoredDocuments
from bakeoff.core.id_rows import IdRows
from bakeoff.core.lazy_sequence import LazySequence
from bakeoff.core.progress import track
from bakeoff.core.task import Document, document_ids
from bakeoff.embedding.chunking import Chunk, document_chunks

Chunker = Callable[[Document], Sequence[Chunk]]  # a document's chunks


@dataclass(frozen=True, slots=True)
class ChunkAsDocumentSays:
    """Chunks each document, or one of its fields, by the document's own metadata."""

    field: str = ""

    def __call__(self, document: Document) -> Sequence[Chunk]:
        """The chunks of one document."""
        return document_chunks(document, self.field)

    def uncut(self, documents: Sequence[Document]) -> list[str] | None:
        """The texts of documents that all stay whole, without an object per chunk; None if one is split."""
        if self.field or any(document.chunking.chunk_strategy != "whole" for document in documents):
            return None
        return [document.whole() for document in documents]


class StoredChunks(LazySequence[Chunk]):
    """Chunks of documents on disk. Only the ids of chunks and documents are in memory."""

    def __init__(self, documents: StoredDocuments, chunker: Chunker) -> None:
        self._source, self._chunker = documents, chunker
        self.ids: list[str] = []
        self.documents: list[str] = []
        counts = np.ones(len(documents), dtype=np.int32)
        number = 0
        for block in track("documents to cut", len(documents), documents.blocks()):
            names = documents.ids[number : number + len(block)]
            if self._uncut(block) is not None:
                self.ids += names
                self.documents += names
            else:
                for place, (name, document) in enumerate(zip(names, block, strict=True), start=number):
                    chunks = chunker(document)
                    counts[place] = len(chunks)
                    self.ids += [name if chunk.id == name else chunk.id for chunk in chunks]
                    self.documents += [name] * len(chunks)
            number += len(block)
        if len(self.ids) == len(documents) and self.ids == documents.ids:
            self.ids = self.documents = documents.ids
        self._ends = np.cumsum(counts, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Chunk]:
        for document in self._source:
            yield from self._chunker(document)

    def texts(self) -> Iterator[str]:
        """The texts of all chunks, in order."""
        for block in self._source.blocks():
            uncut = self._uncut(block)
            yield from (
                [chunk.text for document in block for chunk in self._chunker(document)] if uncut is None else uncut
            )

    def _uncut(self, block: Sequence[Document]) -> list[str] | None:
        return self._chunker.uncut(block) if isinstance(self._chunker, ChunkAsDocumentSays) else None

    def _between(self, start: int, stop: int) -> Iterator[Chunk]:
        if start >= stop:
            return
        first, last = (int(np.searchsorted(self._ends, place, side="right")) for place in (start, stop - 1))
        before = int(self._ends[first - 1]) if first else 0
        chunks = (chunk for document in self._source[first : last + 1] for chunk in self._chunker(document))
        yield from islice(chunks, start - before, stop - before)


def chunks_of_corpus(documents: Sequence[Document], chunker: Chunker) -> Sequence[Chunk]:
    """All chunks of a corpus."""
    if isinstance(documents, StoredDocuments):
        return StoredChunks(documents, chunker)
    return [chunk for document in documents for chunk in chunker(document)]


class ChunkTexts(LazySequence[str]):
    """The texts of chunks, read on demand."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks

    def __len__(self) -> int:
        return len(self._chunks)

    def __iter__(self) -> Iterator[str]:
        if isinstance(self._chunks, StoredChunks):
            return self._chunks.texts()
        return (chunk.text for chunk in self._chunks)

    def _between(self, start: int, stop: int) -> Iterator[str]:
        return (chunk.text for chunk in self._chunks[start:stop])


class WholeTexts(LazySequence[str]):
    """The text to embed of each document, or of one of its fields, read on demand."""

    def __init__(self, documents: Sequence[Document], field: str = "") -> None:
        self._documents, self._field = documents, field

    def __len__(self) -> int:
        return len(self._documents)

    def __iter__(self) -> Iterator[str]:
        return (document.whole(self._field) for document in self._documents)

    def _between(self, start: int, stop: int) -> Iterator[str]:
        return (document.whole(self._field) for document in self._documents[start:stop])


class ChosenTexts(LazySequence[str]):
    """Some of very many texts, by ascending place."""

    def __init__(self, texts: Sequence[str], places: NDArray[np.int64]) -> None:
        self._texts, self._places = texts, places

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[str]:
        chosen = np.zeros(len(self._texts), dtype=bool)
        chosen[self._places] = True
        return compress(self._texts, chosen)

    def _between(self, start: int, stop: int) -> Iterator[str]:
        return (self._texts[number] for number in self._places[start:stop].tolist())


class TextsById(Mapping[str, str]):
    """Texts by document id, for reading a few of very many."""

    def __init__(self, documents: Sequence[Document], field: str = "") -> None:
        self._ids, self._texts = document_ids(documents), WholeTexts(documents, field)
        self._rows = IdRows(self._ids)

    def __getitem__(self, document: str) -> str:
        rows = self._rows.of(document)
        if not rows:
            raise KeyError(document)
        return self._texts[rows[0]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def in_blocks(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """All texts in order, `size` at a time. Each is read once."""
    rest = iter(texts)
    while block := list(islice(rest, size)):
        yield block
