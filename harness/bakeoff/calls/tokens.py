"""Token counts and prices, estimated before a call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from bakeoff_providers.base import TEXT, ModelCard

from bakeoff.core.arrays import Values

CHARACTERS_PER_TOKEN = 4.0  # English prose; used only if no server has counted


def estimate_tokens(texts: Sequence[str], prompt: str = "") -> float:
    """The estimated tokens of all texts together."""
    return float(token_estimates(texts, prompt).sum())


def token_estimates(texts: Sequence[str], prompt: str = "") -> Values:
    """The estimated tokens of each text, by its length. Displayed as estimates."""
    around = len(prompt.replace(TEXT, "", 1))
    lengths = np.fromiter(map(len, texts), dtype=np.float64, count=len(texts)) + around
    return np.maximum(1.0, lengths / CHARACTERS_PER_TOKEN)


def price_of(tokens: float, card: ModelCard) -> float:
    """Tokens times list price; nothing if the price is unknown."""
    return 0.0 if card.price is None else tokens * card.price.usd_per_million_tokens / 1e6
