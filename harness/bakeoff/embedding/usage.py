"""What a provider was asked for, counted."""

from __future__ import annotations

from dataclasses import dataclass

from bakeoff_providers.base import ModelCard


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

    def add(self, other: Usage) -> None:
        """What somebody else asked for on its behalf; texts are counted by who keeps them."""
        self.requests += other.requests
        self.retries += other.retries
        self.truncated += other.truncated
        self.tokens += other.tokens
        self.estimated |= other.estimated
