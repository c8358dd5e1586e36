"""What a provider was asked for, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from bakeoff_providers.base import ModelCard
from numpy.typing import NDArray

from bakeoff.calls.key_index import Places
from bakeoff.calls.retry import Attempted
from bakeoff.calls.tokens import token_estimates
from bakeoff.embedding.shards import Tokens


@dataclass(frozen=True, slots=True)
class Stored:
    """Texts in a space: where, which were asked for in this run, their tokens, and which of these are a guess."""

    places: Places
    asked: NDArray[np.bool_]
    tokens: Tokens
    estimated: NDArray[np.bool_]

    @classmethod
    def of(cls, texts: Sequence[str], places: Places, asked: NDArray[np.bool_], tokens: Tokens, prompt: str) -> Stored:
        """With an estimate of the tokens where no server had counted them, which is kept as 0."""
        estimated = tokens == 0
        if estimated.any():
            uncounted = [text for text, unknown in zip(texts, estimated, strict=True) if unknown]
            tokens[estimated] = token_estimates(uncounted, prompt)
        return cls(places, asked, tokens, estimated)

    def at(self, rows: Sequence[int]) -> Stored:
        """Some of them, or some of them several times."""
        return Stored(self.places[rows], self.asked[rows], self.tokens[rows], self.estimated[rows])


@dataclass(slots=True)
class Usage:
    """What one contender's vectors needed, to be shown in its row."""

    texts: int = 0
    cached: int = 0
    requests: int = 0
    retries: int = 0
    truncated: int = 0
    tokens: float = 0.0
    estimated: bool = False

    def cost(self, card: ModelCard) -> float | None:
        """Tokens times list price; None where no price is known."""
        return None if card.price is None else self.tokens * card.price.usd_per_million_tokens / 1e6

    def count_call(self, attempted: Attempted) -> None:
        """A request, and what it took to get its answer."""
        self.requests += 1 + attempted.retries
        self.retries += attempted.retries

    def add(self, other: Usage) -> None:
        """What somebody else asked for on its behalf; texts are counted by who keeps them."""
        self.requests += other.requests
        self.retries += other.retries
        self.truncated += other.truncated
        self.tokens += other.tokens
        self.estimated |= other.estimated

    def count(self, blockwise: Sequence[Stored], before: Places | None = None) -> Places:
        """Texts that are not among those counted `before`, with what earlier runs paid for them; says what is counted.

        The tokens of texts that were asked for in this run are added when the answers arrive.
        """
        places = np.concatenate([stored.places for stored in blockwise])
        asked = np.concatenate([stored.places[stored.asked] for stored in blockwise])
        distinct, first = np.unique(places, return_index=True)
        before = np.empty(0, dtype=np.int64) if before is None else before
        new = ~np.isin(distinct, before)
        cached = new & ~np.isin(distinct, asked)
        tokens = np.concatenate([stored.tokens for stored in blockwise])[first[cached]]
        self.texts += int(np.count_nonzero(new))
        self.cached += int(np.count_nonzero(cached))
        self.tokens += float(tokens.sum(dtype=np.float64))
        self.estimated |= bool(np.concatenate([stored.estimated for stored in blockwise])[first[cached]].any())
        return np.union1d(before, distinct) if new.any() else before
