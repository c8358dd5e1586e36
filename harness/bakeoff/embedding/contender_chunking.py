"""How one contender cuts documents, in place of what their metadata say: an axis of the matrix.

`recursive` and `markdown` are semantic-text-splitter's: it cuts at the largest boundary that fits (headings,
paragraphs, sentences, words), counts by whatever function it is given, so by the model's own tokenizer, and is one
wheel without dependencies. Chonkie would be three packages with tokenizers of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import ceil
from typing import Annotated, Literal

import msgspec
from bakeoff_providers.errors import Unavailable
from bakeoff_providers.registry import missing_modules

from bakeoff.core.task import Document, DocumentChunking
from bakeoff.embedding.chunking import Chunk, numbered_chunks, sentences, split_text

Strategy = Literal["whole", "fixed", "sentence", "semantic", "recursive", "markdown"]
Unit = Literal["words", "tokens", "characters", "bytes"]
Parents = Literal["best", "mean", "sum"]
Count = Callable[[str], int]

MODULES, EXTRA = ("semantic_text_splitter",), "chunking"
_SHORT: dict[Unit, str] = {"words": "", "tokens": "t", "characters": "c", "bytes": "b"}


class ContenderChunking(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Chunks of at most `size` units, `overlap` of them shared with the chunk before.

    `parents` says how a document is scored by its chunks: by the best, by the mean of the `top` best, or by their sum.
    """

    strategy: Annotated[Strategy, "where a document is cut: recursive and markdown need bakeoff[chunking]"] = (
        "recursive"
    )
    size: Annotated[int, "most units of a chunk"] = 512
    overlap: Annotated[int, "units that a chunk shares with the one before"] = 0
    unit: Annotated[Unit, "what is counted; tokens are the model's own"] = "words"
    parents: Annotated[Parents, "how a document is scored by its chunks"] = "best"
    top: Annotated[int, "chunks that the mean is taken over"] = 3
    label: Annotated[str, "what it is called in the row's name"] = ""

    def __post_init__(self) -> None:
        if self.size < 1 or self.top < 1:
            raise ValueError("size and top must be at least 1")
        if not 0 <= self.overlap < self.size:
            raise ValueError(f"overlap = {self.overlap} must be 0 or more and smaller than size = {self.size}")
        if self.unit != "words" and self.strategy in ("sentence", "semantic"):
            raise ValueError(f"{self.strategy} counts words; use strategy = 'recursive' for {self.unit}")
        if self.overlap and self.strategy in ("whole", "semantic"):
            raise ValueError(f"{self.strategy} has no overlap")

    def __str__(self) -> str:
        if self.label:
            return self.label
        size = "" if self.strategy == "whole" else f"-{self.size}{_SHORT[self.unit]}"
        overlap = f"-o{self.overlap}" if self.overlap else ""
        parents = "" if self.parents == "best" else f"-{self.parents}{self.top if self.parents == 'mean' else ''}"
        return f"{self.strategy}{size}{overlap}{parents}"

    def missing(self) -> str | None:
        """Which install would make it work."""
        return missing_modules(MODULES, EXTRA) if self.strategy in ("recursive", "markdown") else None


def estimated(text: str) -> int:
    """Tokens where no model is asked: three characters each."""
    return ceil(len(text) / 3)


def contender_chunks(
    document: Document, field: str, chunking: ContenderChunking, tokens: Count = estimated
) -> list[Chunk]:
    """The chunks of one document; its title goes before each of them, and is counted with it.

    A title that takes more than half of a chunk is cut with the text instead.
    """
    text, title = (document.field(field), "") if field else (document.text, document.title)
    count = {"words": _words, "characters": len, "tokens": tokens, "bytes": _bytes}[chunking.unit]
    taken = count(f"{title} ") if title else 0
    if 2 * taken > chunking.size and chunking.strategy != "whole":
        text, title, taken = f"{title} {text}", "", 0
    room = chunking.size - taken
    while True:
        parts = [part for part in _parts(text, chunking, room, count) if part.strip()] or [""]
        texts = [f"{title} {part}".strip() for part in parts]
        excess = max(map(count, texts)) - chunking.size if chunking.unit == "tokens" else 0
        if excess <= 0 or room == 1 or chunking.strategy == "whole":
            break
        room = max(1, room - excess)  # title and text together may have more tokens than apart
    return numbered_chunks(document, texts)


def _parts(text: str, chunking: ContenderChunking, room: int, count: Count) -> Sequence[str]:
    overlap = min(chunking.overlap, room - 1)
    match chunking.strategy:
        case "whole":
            return [text]
        case "fixed" if chunking.unit == "words":
            return _windows(text.split(), room, overlap)
        case "sentence" if overlap:
            return _overlapping(sentences(text), room, overlap)
        case "sentence" | "semantic":
            return split_text(text, DocumentChunking(chunking.strategy, room))
    return _split(text, chunking.strategy, room, overlap, count)


def _split(text: str, strategy: str, room: int, overlap: int, count: Count) -> list[str]:
    if reason := missing_modules(MODULES, EXTRA):
        raise Unavailable(f"chunking: {reason}")
    from semantic_text_splitter import MarkdownSplitter, TextSplitter

    kind = MarkdownSplitter if strategy == "markdown" else TextSplitter
    return list(kind.from_callback(count, room, overlap=overlap).chunks(text))


def _windows(words: Sequence[str], size: int, overlap: int) -> list[str]:
    step = size - overlap
    starts = range(0, max(1, len(words) - overlap), step)
    return [" ".join(words[start : start + size]) for start in starts]


def _overlapping(parts: Sequence[str], size: int, overlap: int) -> list[str]:
    """Whole sentences while they fit; the next chunk begins with the last ones, as far as they fit the overlap."""
    chunks: list[list[str]] = [[]]
    for sentence in parts:
        for part in _windows(sentence.split(), size, 0) if _words(sentence) > size else [sentence]:
            if chunks[-1] and sum(map(_words, chunks[-1])) + _words(part) > size:
                chunks.append(_tail(chunks[-1], min(overlap, size - _words(part))))
            chunks[-1].append(part)
    return [" ".join(chunk) for chunk in chunks]


def _tail(chunk: Sequence[str], room: int) -> list[str]:
    kept: list[str] = []
    for sentence in reversed(chunk):
        if sum(map(_words, kept)) + _words(sentence) > room:
            break
        kept.insert(0, sentence)
    return kept


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _words(text: str) -> int:
    return len(re.findall(r"\S+", text))
