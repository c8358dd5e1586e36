"""Chunking: by each document's metadata, equal for all contenders, or as one contender sets it.

A contender's chunking is an axis of the matrix. `recursive` and `markdown` use semantic-text-splitter. It splits at the
largest boundary that fits (headings, paragraphs, sentences, words), counts with the model's own tokenizer, and is one
wheel without dependencies. Chonkie would add three packages with their own tokenizers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, sqrt
from typing import Annotated, Literal, assert_never

import msgspec
from bakeoff_providers.errors import Unavailable
from bakeoff_providers.registry import missing_modules

from bakeoff.core.task import Document, DocumentChunking

WINDOW = 10  # sentences on each side of a gap
# A full stop, question or exclamation mark, a space, and something that can start a sentence.
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-ZÀ-Þ0-9])")
# Full stops that end no sentence: initials and the most common English abbreviations.
_NO_END = re.compile(r"(?:\b[A-Z]|\b(?:St|Mt|Dr|Mr|Mrs|Ms|No|Jr|Sr|vs|etc|e\.g|i\.e|approx|ca|U\.S))\.$")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document as embedded, with the title in front. Parts of a field have no title."""

    id: str
    document: str
    text: str


def document_chunks(document: Document, field: str = "") -> list[Chunk]:
    """The chunks of a document, or of one of its fields. A document left whole keeps its own id."""
    title, text = ("", document.field(field)) if field else (document.title, document.text)
    texts = [f"{title} {chunk}".strip() for chunk in split_text(text, document.chunking) or [""]]
    return number_chunks(document, texts)


def number_chunks(document: Document, texts: Sequence[str]) -> list[Chunk]:
    """Chunks with numbered ids: `id#0`, `id#1`, …. A single chunk keeps the document's id."""
    if len(texts) == 1:
        return [Chunk(document.id, document.id, texts[0])]
    return [Chunk(f"{document.id}#{place}", document.id, text) for place, text in enumerate(texts)]


def split_text(text: str, chunking: DocumentChunking) -> list[str]:
    """Splits a text by one of the strategies that count words."""
    size = chunking.max_chunk_size
    match chunking.chunk_strategy:
        case "whole":
            return [text]
        case "fixed":
            return list(_split_words(text, size))
        case "sentence":
            return _pack(sentences(text), size)
        case "semantic":
            return _semantic(sentences(text), size)
        case _:
            assert_never(chunking.chunk_strategy)


def sentences(text: str) -> list[str]:
    """Splits prose into sentences. Initials and common abbreviations do not end a sentence."""
    complete: list[str] = []
    for part in _SENTENCE_END.split(text.strip()):
        if complete and _NO_END.search(complete[-1]):
            complete[-1] = f"{complete[-1]} {part}"
        elif part:
            complete.append(part)
    return complete


def _split_words(text: str, size: int) -> Iterator[str]:
    words = text.split()
    for start in range(0, len(words), size):
        yield " ".join(words[start : start + size])


def _pack(parts: Sequence[str], size: int) -> list[str]:
    """Joins neighbouring sentences while they fit. A sentence that is too long is split by words."""
    packed: list[str] = []
    room = 0
    for part in parts:
        length = len(part.split())
        if length > size:
            packed += _split_words(part, size)
            room = 0
        elif packed and length <= room:
            packed[-1] = f"{packed[-1]} {part}"
            room -= length
        else:
            packed.append(part)
            room = size - length
    return packed


def _semantic(parts: Sequence[str], size: int) -> list[str]:
    """Splits where the vocabulary changes most until each chunk fits (after Hearst's TextTiling).

    It uses words only, never a contender's vectors, so every contender gets the same chunks. Each gap is scored once,
    by the sentences around it, so the time is linear in the length.
    """
    weakest = _gaps(parts)
    words = [0, *accumulate(len(part.split()) for part in parts)]
    chunks: list[str] = []
    waiting = [(0, len(parts))]
    while waiting:
        start, end = waiting.pop()
        if end - start <= 1 or words[end] - words[start] <= size:
            chunks += _pack(parts[start:end], size)
            continue
        cut = weakest(start + 1, end)
        waiting += [(cut, end), (start, cut)]  # the left one comes next
    return chunks


def _gaps(parts: Sequence[str]) -> Callable[[int, int], int]:
    """The weakest gap of a range, by the cosine of the words of WINDOW sentences before and after it."""
    bags = [Counter(re.findall(r"\w{4,}", part.lower())) for part in parts]
    levels = [[(0.0, 0)] + [(_similarity(bags, gap), gap) for gap in range(1, len(bags))]]
    while (step := 1 << (len(levels) - 1)) * 2 <= len(bags):  # minimum over 1, 2, 4, … neighbours
        last = levels[-1]
        levels.append([min(last[place], last[place + step]) for place in range(len(last) - step)])

    def weakest(first: int, end: int) -> int:
        level = (end - first).bit_length() - 1
        return min(levels[level][first], levels[level][end - (1 << level)])[1]

    return weakest


def _similarity(bags: Sequence[Counter[str]], gap: int) -> float:
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    for bag in bags[max(0, gap - WINDOW) : gap]:
        before.update(bag)
    for bag in bags[gap : gap + WINDOW]:
        after.update(bag)
    return _cosine(before, after)


def _cosine(a: Counter[str], b: Counter[str]) -> float:
    shared = sum(count * b[word] for word, count in a.items())
    norm = sqrt(sum(count * count for count in a.values()) * sum(count * count for count in b.values()))
    return shared / norm if norm else 0.0


Strategy = Literal["whole", "fixed", "sentence", "semantic", "recursive", "markdown"]
Unit = Literal["words", "tokens", "characters", "bytes"]
Parents = Literal["best", "mean", "sum"]
Count = Callable[[str], int]

MODULES, EXTRA = ("semantic_text_splitter",), "chunking"
_SHORT: dict[Unit, str] = {"words": "", "tokens": "t", "characters": "c", "bytes": "b"}


class ContenderChunking(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Chunks of at most `size` units, of which `overlap` are shared with the previous chunk.

    `parents` is how chunks score their document: by the best, by the mean of the `top` best, or by their sum.
    """

    strategy: Annotated[Strategy, "chunking strategy; recursive and markdown need bakeoff[chunking]"] = "recursive"
    size: Annotated[int, "maximum units per chunk"] = 512
    overlap: Annotated[int, "units shared with the previous chunk"] = 0
    unit: Annotated[Unit, "unit of the size; tokens are the model's own"] = "words"
    parents: Annotated[Parents, "how a document is scored by its chunks"] = "best"
    top: Annotated[int, "chunks that enter the mean"] = 3
    label: Annotated[str, "its name in the row's label"] = ""

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
        """The install command that would make it work."""
        return missing_modules(MODULES, EXTRA) if self.strategy in ("recursive", "markdown") else None


def guess_tokens(text: str) -> int:
    """An estimate without a tokenizer: three characters per token."""
    return ceil(len(text) / 3)


def contender_chunks(
    document: Document, field: str, chunking: ContenderChunking, tokens: Count = guess_tokens
) -> list[Chunk]:
    """The chunks of a document. The title goes before each and counts towards its size.

    A title longer than half a chunk is chunked with the text instead.
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
        room = max(1, room - excess)  # title and text may have more tokens together than apart
    return number_chunks(document, texts)


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
        case "fixed" | "recursive" | "markdown":
            return _split(text, chunking.strategy, room, overlap, count)
        case _:
            assert_never(chunking.strategy)


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
    """Whole sentences while they fit. The next chunk starts with the last ones, as far as the overlap allows."""
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
