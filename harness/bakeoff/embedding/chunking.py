"""Cutting documents as their metadata says, the same for every contender: no model gets friendlier pieces."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.core.task import Chunking, Document

# A full stop, question or exclamation mark, a space, and something that can open a sentence.
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-ZÀ-Þ0-9])")
# Stops that end no sentence: initials and the abbreviations met most in English prose.
_NO_END = re.compile(r"(?:\b[A-Z]|\b(?:St|Mt|Dr|Mr|Mrs|Ms|No|Jr|Sr|vs|etc|e\.g|i\.e|approx|ca|U\.S))\.$")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document as it is embedded, its title before it; a piece of a field has none."""

    id: str
    document: str
    text: str


def chunks(document: Document, field: str = "") -> list[Chunk]:
    """The pieces of one document, or of one of its fields. A document that is not cut keeps its own id."""
    if field and field not in document.fields:
        raise InputError(
            f"document {document.id!r} has no field {field!r}", place="field", remedy=nearest(field, [*document.fields])
        )
    title, text = ("", document.fields[field]) if field else (document.title, document.text)
    texts = [f"{title} {piece}".strip() for piece in pieces_of(text, document.chunking) or [""]]
    if len(texts) == 1:
        return [Chunk(document.id, document.id, texts[0])]
    return [Chunk(f"{document.id}#{place}", document.id, text) for place, text in enumerate(texts)]


def pieces_of(text: str, chunking: Chunking) -> list[str]:
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
    """Cuts where the vocabulary changes most, again and again until each piece fits (after Hearst's TextTiling).

    It looks at words only, never at a contender's vectors: every contender gets the same pieces.
    """
    if len(parts) <= 1 or sum(len(part.split()) for part in parts) <= size:
        return _packed(parts, size)
    bags = [Counter(re.findall(r"\w{4,}", part.lower())) for part in parts]
    gaps = range(1, len(parts))
    cut = min(gaps, key=lambda gap: (_cosine(sum(bags[:gap], Counter()), sum(bags[gap:], Counter())), gap))
    return _semantic(parts[:cut], size) + _semantic(parts[cut:], size)


def _cosine(a: Counter[str], b: Counter[str]) -> float:
    shared = sum(count * b[word] for word, count in a.items())
    norm = sqrt(sum(count * count for count in a.values()) * sum(count * count for count in b.values()))
    return shared / norm if norm else 0.0
