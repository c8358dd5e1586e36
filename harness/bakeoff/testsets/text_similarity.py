"""How alike two texts are by their words and letters alone: for queries that repeat each other or their source."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import ceil

ENDINGS = ("ing", "ed", "es", "en", "er", "s", "e")
LETTERS = 3  # letters a piece, when two queries are compared


@lru_cache(maxsize=20_000)
def content_words(text: str, language: str = "en") -> frozenset[str]:
    """The words that carry meaning, without their commonest endings: `mines` and `mining` are one."""
    import bm25s

    stop = {"en": "en_plus"}.get(language, language)
    try:
        tokens = bm25s.tokenize([text], stopwords=stop, return_ids=False, show_progress=False)
    except ValueError:  # a language without a list of stop words
        tokens = bm25s.tokenize([text], stopwords=None, return_ids=False, show_progress=False)
    return frozenset(_stem(word) for word in tokens[0])


def overlap(query: str, source: str, language: str = "en") -> float:
    """The share of the query's content words that stand in the source: 1 can be found by its words alone."""
    asked = content_words(query, language)
    return len(asked & content_words(source, language)) / len(asked) if asked else 1.0


def similarity(a: str, b: str) -> float:
    """Shared pieces of three letters over all such pieces: 1 for texts that differ in case and signs only."""
    pieces, others = _pieces(a), _pieces(b)
    return len(pieces & others) / len(pieces | others) if pieces | others else 1.0


def near_duplicates(texts: Sequence[str], limit: float) -> list[tuple[int, int, float]]:
    """Pairs of places whose texts are at least this similar (0 < limit ≤ 1).

    Two such texts share one of each other's rarest pieces, so only texts that do are compared: with thousands of
    queries, comparing all of them would take minutes.
    """
    pieces = [_pieces(text) for text in texts]
    use = Counter(piece for text in pieces for piece in text)
    holders: dict[str, list[int]] = {}
    found = []
    for j, text in enumerate(pieces):
        rarest = sorted(text, key=lambda piece: (use[piece], piece))[: len(text) - ceil(limit * len(text) - 1e-9) + 1]
        candidates = {i for piece in rarest or [""] for i in holders.get(piece, ())}
        found += [(i, j, alike) for i in candidates if (alike := similarity(texts[i], texts[j])) >= limit]
        for piece in rarest or [""]:
            holders.setdefault(piece, []).append(j)
    return sorted(found)


def normalised(text: str) -> str:
    """Letters and digits in lower case with single blanks: what two texts have in common when they say the same."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


@lru_cache(maxsize=20_000)
def _pieces(text: str) -> frozenset[str]:
    padded = f" {normalised(text)} "
    return (
        frozenset(padded[at : at + LETTERS] for at in range(len(padded) - LETTERS + 1))
        if padded.strip()
        else frozenset()
    )


def _stem(word: str) -> str:
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
