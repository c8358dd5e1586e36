"""How alike two texts are by their words and letters alone: for queries that repeat each other or their source."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from typing import Any

MOST_ALIKE = 0.6  # of two queries that ask for different things
LETTERS = 3  # per piece, when two queries are compared


@lru_cache(maxsize=20_000)
def content_words(text: str, language: str = "en") -> frozenset[str]:
    """The stems of the words that carry meaning: `mines` and `mining` are one.

    A language without stop words or without a stemmer of its own is compared with what there is.
    """
    import bm25s

    stop_words, stemmer = _language_tools(language)
    tokens = bm25s.tokenize([text], stopwords=stop_words, stemmer=stemmer, return_ids=False, show_progress=False)
    return frozenset(tokens[0])


@lru_cache
def _language_tools(language: str) -> tuple[str | None, Any]:
    """The names of bm25s's stop words and Snowball's stemmer for a language code, None where there is none."""
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
    """The share of the query's content words that occur in the source: at 1, words alone find it."""
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
    pairs = []
    for j, text in enumerate(pieces):
        rarest = sorted(text, key=lambda piece: (use[piece], piece))[: len(text) - ceil(limit * len(text) - 1e-9) + 1]
        candidates = {i for piece in rarest or [""] for i in holders.get(piece, ())}
        pairs += [(i, j, alike) for i in candidates if (alike := similarity(texts[i], texts[j])) >= limit]
        for piece in rarest or [""]:
            holders.setdefault(piece, []).append(j)
    return sorted(pairs)


def normalise(text: str) -> str:
    """Letters and digits in lower case with single blanks: what two texts have in common when they say the same."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


@lru_cache(maxsize=20_000)
def _pieces(text: str) -> frozenset[str]:
    padded = f" {normalise(text)} "
    return (
        frozenset(padded[at : at + LETTERS] for at in range(len(padded) - LETTERS + 1))
        if padded.strip()
        else frozenset()
    )
