"""Documents in chunks as their metadata says, the same for every contender: no model gets friendlier ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import sqrt

from bakeoff.core.task import Document, DocumentChunking

WINDOW = 10  # sentences on each side of a gap
# A full stop, question or exclamation mark, a space, and something that can open a sentence.
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-ZÀ-Þ0-9])")
# Stops that end no sentence: initials and the abbreviations met most in English prose.
_NO_END = re.compile(r"(?:\b[A-Z]|\b(?:St|Mt|Dr|Mr|Mrs|Ms|No|Jr|Sr|vs|etc|e\.g|i\.e|approx|ca|U\.S))\.$")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document as it is embedded, its title before it; a part of a field has none."""

    id: str
    document: str
    text: str


def document_chunks(document: Document, field: str = "") -> list[Chunk]:
    """The chunks of one document, or of one of its fields. A document that is not cut keeps its own id."""
    title, text = ("", document.field(field)) if field else (document.title, document.text)
    texts = [f"{title} {chunk}".strip() for chunk in split_text(text, document.chunking) or [""]]
    return numbered_chunks(document, texts)


def numbered_chunks(document: Document, texts: Sequence[str]) -> list[Chunk]:
    """Texts of one document under its id: `id#0`, `id#1`, …; a single one keeps the document's own."""
    if len(texts) == 1:
        return [Chunk(document.id, document.id, texts[0])]
    return [Chunk(f"{document.id}#{place}", document.id, text) for place, text in enumerate(texts)]


def split_text(text: str, chunking: DocumentChunking) -> list[str]:
    """A text cut by one of the strategies that count words."""
    size = chunking.max_chunk_size
    match chunking.chunk_strategy:
        case "whole":
            return [text]
        case "fixed":
            return list(_fixed(text, size))
        case "sentence":
            return _packed(sentences(text), size)
        case "semantic":
            return _semantic(sentences(text), size)


def sentences(text: str) -> list[str]:
    """Splits prose at sentence ends; initials and common abbreviations end none."""
    complete: list[str] = []
    for part in _SENTENCE_END.split(text.strip()):
        if complete and _NO_END.search(complete[-1]):
            complete[-1] = f"{complete[-1]} {part}"
        elif part:
            complete.append(part)
    return complete


def _fixed(text: str, size: int) -> Iterator[str]:
    words = text.split()
    for start in range(0, len(words), size):
        yield " ".join(words[start : start + size])


def _packed(parts: Sequence[str], size: int) -> list[str]:
    """Neighbouring sentences together while they fit; one that is too long by itself is cut by words."""
    packed: list[str] = []
    room = 0
    for part in parts:
        length = len(part.split())
        if length > size:
            packed += _fixed(part, size)
            room = 0
        elif packed and length <= room:
            packed[-1] = f"{packed[-1]} {part}"
            room -= length
        else:
            packed.append(part)
            room = size - length
    return packed


def _semantic(parts: Sequence[str], size: int) -> list[str]:
    """Cuts where the vocabulary changes most, again and again until each chunk fits (after Hearst's TextTiling).

    It looks at words only, never at a contender's vectors: every contender gets the same chunks. A gap is judged once,
    by the sentences around it, so that a book takes no longer than its length.
    """
    weakest = _gaps(parts)
    words = [0, *accumulate(len(part.split()) for part in parts)]
    chunks: list[str] = []
    waiting = [(0, len(parts))]
    while waiting:
        start, end = waiting.pop()
        if end - start <= 1 or words[end] - words[start] <= size:
            chunks += _packed(parts[start:end], size)
            continue
        cut = weakest(start + 1, end)
        waiting += [(cut, end), (start, cut)]  # the left one is taken next
    return chunks


def _gaps(parts: Sequence[str]) -> Callable[[int, int], int]:
    """The weakest gap of a range, by the cosine of the words of WINDOW sentences before it and after it."""
    bags = [Counter(re.findall(r"\w{4,}", part.lower())) for part in parts]
    levels = [[(0.0, 0)] + [(_similarity(bags, gap), gap) for gap in range(1, len(bags))]]
    while (step := 1 << (len(levels) - 1)) * 2 <= len(bags):  # the least of 1, 2, 4, … neighbours
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
