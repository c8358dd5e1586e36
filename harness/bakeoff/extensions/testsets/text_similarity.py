"""Lexical similarity of texts, to detect queries that repeat each other or their source."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from typing import Any

MOST_ALIKE = 0.6  # similarity from which two queries count as duplicates
LETTERS = 3  # letters per n-gram


@lru_cache(maxsize=20_000)
def content_words(text: str, language: str = "en") -> frozenset[str]:
    """The stems of content words: `mines` and `mining` are the same.

    A language without stop words or a stemmer is compared without them.
    """
    import bm25s

    stop_words, stemmer = _language_tools(language)
    tokens = bm25s.tokenize([text], stopwords=stop_words, stemmer=stemmer, return_ids=False, show_progress=False)
    return frozenset(tokens[0])


@lru_cache
def _language_tools(language: str) -> tuple[str | None, Any]:
    """bm25s's stop words and Snowball's stemmer for a language code; None if missing."""
    import bm25s
    import Stemmer

    stop_words: str | None = {"en": "en_plus"}.get(language, language)
    try:
        bm25s.tokenize([""], stopwords=stop_words, show_progress=False)
    except ValueError:
        stop_words = None
    try:
        return stop_words, Stemmer.Stemmer(language)
    except KeyError:
        return stop_words, None


def overlap(query: str, source: str, language: str = "en") -> float:
    """The share of the query's content words that occur in the source. At 1, keyword search finds it."""
    asked = content_words(query, language)
    return len(asked & content_words(source, language)) / len(asked) if asked else 1.0


def similarity(a: str, b: str) -> float:
    """Jaccard similarity of character trigrams: 1 for texts that differ only in case and punctuation."""
    pieces, others = _pieces(a), _pieces(b)
    return len(pieces & others) / len(pieces | others) if pieces | others else 1.0


def near_duplicates(texts: Sequence[str], limit: float) -> list[tuple[int, int, float]]:
    """Pairs of positions whose texts are at least this similar (0 < limit ≤ 1).

    Such texts share one of each other's rarest trigrams, so only those are compared. Comparing all pairs of thousands
    of queries would take minutes.
    """
    pieces = [_pieces(text) for text in texts]
    use = Counter(piece for text in pieces for piece in text)
    holders: dict[str, list[int]] = {}
    pairs = []
    for j, text in enumerate(pieces):
        rarest = sorted(text, key=lambda piece: (use[piece], piece))[: len(text) - ceil(limit * len(text) - 1e-9) + 1]
        candidates = {i for piece in rarest or [""] for i in holders.get(piece, ())}
        pairs += [(i, j, alike) for i in candidates if (alike := similarity(texts[i], texts[j])) >= limit]
        for piece in rarest or [""]:
            holders.setdefault(piece, []).append(j)
    return sorted(pairs)


def normalise(text: str) -> str:
    """Lower-case letters and digits with single spaces."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


@lru_cache(maxsize=20_000)
def _pieces(text: str) -> frozenset[str]:
    padded = f" {normalise(text)} "
    return (
        frozenset(padded[at : at + LETTERS] for at in range(len(padded) - LETTERS + 1))
        if padded.strip()
        else frozenset()
    )
