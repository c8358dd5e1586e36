"""How alike two texts are by their words and letters alone: for queries that repeat each other or their source."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

ENDINGS = ("ing", "ed", "es", "en", "er", "s", "e")
LETTERS = 3  # letters a piece, when two queries are compared


def content_words(text: str, language: str = "en") -> set[str]:
    """The words that carry meaning, without their commonest endings: `mines` and `mining` are one."""
    import bm25s

    stop = {"en": "en_plus"}.get(language, language)
    try:
        tokens = bm25s.tokenize([text], stopwords=stop, return_ids=False, show_progress=False)
    except ValueError:  # a language without a list of stop words
        tokens = bm25s.tokenize([text], stopwords=None, return_ids=False, show_progress=False)
    return {_stem(word) for word in tokens[0]}


def overlap(query: str, source: str, language: str = "en") -> float:
    """The share of the query's content words that stand in the source: 1 can be found by its words alone."""
    asked = content_words(query, language)
    return len(asked & content_words(source, language)) / len(asked) if asked else 1.0


def similarity(a: str, b: str) -> float:
    """Shared pieces of three letters over all such pieces: 1 for texts that differ in case and signs only."""
    pieces, others = _pieces(a), _pieces(b)
    return len(pieces & others) / len(pieces | others) if pieces | others else 1.0


def near_duplicates(texts: Sequence[str], limit: float) -> list[tuple[int, int, float]]:
    """Pairs of places whose texts are at least this similar."""
    found = ((i, j, similarity(texts[i], texts[j])) for i, j in combinations(range(len(texts)), 2))
    return [(i, j, alike) for i, j, alike in found if alike >= limit]


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
