"""Token vectors: one row per token of a text, in their own space of the cache.

A text's first row has the text's key. Its token count is the number of rows, where other spaces store the tokens paid
for. Later rows have the same key plus their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import cast

import numpy as np
from bakeoff_providers.base import Provider, Role, TokenProvider, Vectors, cache_key
from bakeoff_providers.errors import EmbeddingFailed, InputError

from bakeoff.calls.key_index import KeyIndex, Keys, Places, keys_of
from bakeoff.calls.paid import Usage
from bakeoff.core.facts import Fact, fact
from bakeoff.core.files import TEMPORARY
from bakeoff.core.progress import Progress, silent
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.corpus_chunks import in_blocks
from bakeoff.embedding.space import Space

BATCH = 64  # texts per call; their token vectors take about 20 MB
BLOCK_BYTES = 64 << 20  # vectors in memory at once


def check_tokens(provider: Provider) -> TokenProvider:
    """The provider, if it supports token vectors; otherwise InputError."""
    if not isinstance(provider, TokenProvider):
        raise InputError(f"{provider.name} has no token vectors", place="vectors", remedy="minilm and granite do")
    return provider


@dataclass(frozen=True, slots=True)
class TokenRows:
    """Token vectors of many texts on disk. Text n has rows `starts[n]` to `starts[n + 1]`."""

    space: Space
    places: Places
    starts: Places
    dimensions: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def count(self) -> int:
        """The number of vectors."""
        return int(self.starts[-1])

    def of(self, texts: Sequence[int]) -> tuple[Vectors, Places]:
        """The vectors of these texts, and where each text's vectors begin."""
        rows = [np.arange(self.starts[text], self.starts[text + 1]) for text in texts]
        begins = np.cumsum([0, *(len(part) for part in rows)])[:-1]
        return self.space.take(self.places[np.concatenate(rows)]), begins

    def blocks(self) -> Iterator[tuple[int, Vectors, Places]]:
        """All texts in order, in blocks: the first text's number, the vectors, where each text begins."""
        most = max(1, BLOCK_BYTES // (4 * self.dimensions))
        first = 0
        while first < len(self):
            last = int(np.searchsorted(self.starts, self.starts[first] + most, side="right")) - 1
            last = min(max(last, first + 1), len(self))
            low, high = int(self.starts[first]), int(self.starts[last])
            yield first, self.space.take(self.places[low:high]), self.starts[first:last] - low
            first = last


@dataclass(frozen=True, slots=True)
class EmbeddedTokens:
    """The rows, the number of distinct texts, and how many of these were requested now and truncated."""

    rows: TokenRows
    texts: int
    asked: int
    truncated: int

    @property
    def usage(self) -> Usage:
        """The usage of the row's vectors."""
        return Usage(self.texts, self.texts - self.asked, truncated=self.truncated, tokens=float(self.rows.count))


def embed_tokens(
    provider: Provider, texts: Sequence[str], cache: VectorCache | None, scratch: Path, progress: Progress = silent
) -> EmbeddedTokens:
    """Every text's token vectors, through the cache or, without one, in `scratch`."""
    key = cache_key(provider, Role.DOCUMENT)
    kept = cache if cache is not None and key is not None else VectorCache(scratch, remedy=TEMPORARY)
    space = kept.space({**(key or {}), "vectors": "tokens"})
    tokens = check_tokens(provider)
    first = keys_of(texts)
    once = KeyIndex()
    once.add(first, np.arange(len(first)))
    distinct, at = once.all()
    lacking = np.zeros(len(first), dtype=bool)
    lacking[at[space.find(distinct) < 0]] = True
    asked, truncated = int(np.count_nonzero(lacking)), 0
    with progress(f"{provider.card.name}: token vectors", asked) as advance:
        if asked:
            space.check_writable(asked * (provider.card.context or 512))
        for batch in in_blocks(compress(texts, lacking) if asked else (), BATCH):
            answer = tokens.embed_tokens(batch, Role.DOCUMENT)
            if len(answer.vectors) != len(batch) or not all(len(rows) for rows in answer.vectors):
                raise EmbeddingFailed(f"{provider.card.name} returned no token vectors for some texts")
            counts = [len(rows) for rows in answer.vectors]
            paid = np.zeros(sum(counts), dtype=np.float32)
            paid[np.cumsum([0, *counts[:-1]])] = counts
            space.append(_keys(keys_of(batch), counts), paid, np.concatenate(list(answer.vectors)))
            truncated += answer.truncated
            advance(len(batch))
    counts = [round(float(count)) for count in space.tokens_of(space.find(first))]
    places = space.find(_keys(first, counts))
    if (places < 0).any():
        raise EmbeddingFailed("the cache lacks some token vectors: bakeoff cache prune, then run again")
    starts = np.cumsum([0, *counts], dtype=np.int64)
    rows = TokenRows(space, places, starts, cast("int", space.dimensions))
    return EmbeddedTokens(rows, len(distinct), asked, truncated)


def storage_bill(rows: TokenRows) -> Fact:
    """The size of these vectors in bytes as float32, compared with one vector per text."""
    each = 4 * rows.dimensions
    return fact(
        "token_vectors", vectors=rows.count, texts=len(rows), size=rows.count * each, size_of_one_each=len(rows) * each
    )


def _keys(first: Keys, counts: Sequence[int]) -> Keys:
    """The key of every row."""
    rows = np.repeat(first, counts, axis=0).copy()
    begins = np.repeat(np.cumsum([0, *counts[:-1]]), counts)
    rows[:, 1] += (np.arange(len(rows)) - begins).astype(np.uint64)
    return rows
