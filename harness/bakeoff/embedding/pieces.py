"""The pieces of a corpus: kept where the documents are in memory, cut again when they are needed where they are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from typing import overload

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.corpus import StoredDocuments
from bakeoff.core.id_rows import IdRows
from bakeoff.core.task import Document, document_ids
from bakeoff.embedding.chunking import Chunk, chunks

Cut = Callable[[Document], Sequence[Chunk]]  # a document in pieces


@dataclass(frozen=True, slots=True)
class AsDocumentsSay:
    """Cuts each document, or one of its fields, as the document's own metadata say."""

    field: str = ""

    def __call__(self, document: Document) -> Sequence[Chunk]:
        """The pieces of one."""
        return chunks(document, self.field)

    def uncut(self, documents: Sequence[Document]) -> list[str] | None:
        """The texts of documents that all stay whole, without an object for each piece; None where one is cut."""
        if self.field or any(document.chunking.chunk_strategy != "whole" for document in documents):
            return None
        return [document.whole() for document in documents]


class StoredPieces(Sequence[Chunk]):
    """Pieces of documents that are in a file. Of each piece only its id and its document's are kept."""

    def __init__(self, documents: StoredDocuments, cut: Cut) -> None:
        self._source, self._cut = documents, cut
        self.ids: list[str] = []
        self.documents: list[str] = []
        counts = np.ones(len(documents), dtype=np.int32)
        number = 0
        for block in documents.blocks():
            names = documents.ids[number : number + len(block)]
            if self._uncut(block) is not None:
                self.ids += names
                self.documents += names
            else:
                for place, (name, document) in enumerate(zip(names, block, strict=True), start=number):
                    pieces = cut(document)
                    counts[place] = len(pieces)
                    self.ids += [name if piece.id == name else piece.id for piece in pieces]
                    self.documents += [name] * len(pieces)
            number += len(block)
        if len(self.ids) == len(documents) and self.ids == documents.ids:
            self.ids = self.documents = documents.ids
        self._ends = np.cumsum(counts, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> Chunk: ...

    @overload
    def __getitem__(self, place: slice) -> list[Chunk]: ...

    def __getitem__(self, place: int | slice) -> Chunk | list[Chunk]:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            if step != 1:
                return [self[number] for number in range(start, stop, step)]
            return list(self._between(start, stop))
        number = range(len(self))[place]
        return next(self._between(number, number + 1))

    def __iter__(self) -> Iterator[Chunk]:
        for document in self._source:
            yield from self._cut(document)

    def texts(self) -> Iterator[str]:
        """The texts of all pieces, in their order."""
        for block in self._source.blocks():
            uncut = self._uncut(block)
            yield from [piece.text for document in block for piece in self._cut(document)] if uncut is None else uncut

    def _uncut(self, block: Sequence[Document]) -> list[str] | None:
        return self._cut.uncut(block) if isinstance(self._cut, AsDocumentsSay) else None

    def _between(self, start: int, stop: int) -> Iterator[Chunk]:
        if start >= stop:
            return
        first, last = (int(np.searchsorted(self._ends, place, side="right")) for place in (start, stop - 1))
        before = int(self._ends[first - 1]) if first else 0
        cut = (piece for document in self._source[first : last + 1] for piece in self._cut(document))
        yield from islice(cut, start - before, stop - before)


def pieces_of(documents: Sequence[Document], cut: Cut) -> Sequence[Chunk]:
    """All pieces of a corpus."""
    if isinstance(documents, StoredDocuments):
        return StoredPieces(documents, cut)
    return [piece for document in documents for piece in cut(document)]


class PieceTexts(Sequence[str]):
    """The texts of pieces, read when they are asked for."""

    def __init__(self, pieces: Sequence[Chunk]) -> None:
        self._pieces = pieces

    def __len__(self) -> int:
        return len(self._pieces)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [piece.text for piece in self._pieces[place]]
        return self._pieces[place].text

    def __iter__(self) -> Iterator[str]:
        if isinstance(self._pieces, StoredPieces):
            return self._pieces.texts()
        return (piece.text for piece in self._pieces)


class WholeTexts(Sequence[str]):
    """All that is embedded of each document, or of one of its fields, read when it is asked for."""

    def __init__(self, documents: Sequence[Document], field: str = "") -> None:
        self._documents, self._field = documents, field

    def __len__(self) -> int:
        return len(self._documents)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [document.whole(self._field) for document in self._documents[place]]
        return self._documents[place].whole(self._field)

    def __iter__(self) -> Iterator[str]:
        return (document.whole(self._field) for document in self._documents)


class ChosenTexts(Sequence[str]):
    """Some of very many texts, by their places, which ascend."""

    def __init__(self, texts: Sequence[str], places: NDArray[np.int64]) -> None:
        self._texts, self._places = texts, places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self._texts[number] for number in self._places[place].tolist()]
        return self._texts[int(self._places[place])]

    def __iter__(self) -> Iterator[str]:
        chosen = np.zeros(len(self._texts), dtype=bool)
        chosen[self._places] = True
        return compress(self._texts, chosen)


class TextsById(Mapping[str, str]):
    """The same by the documents' ids, for who needs a few of very many."""

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
    """All texts in their order, so many at a time; each is read once."""
    rest = iter(texts)
    while block := list(islice(rest, size)):
        yield block
