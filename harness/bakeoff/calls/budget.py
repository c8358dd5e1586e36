"""Token estimates, prices and the budget: a call's estimate is reserved and settled at the actual cost."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from bakeoff_providers.base import TEXT, ModelCard
from bakeoff_providers.errors import BakeoffError

from bakeoff.core.arrays import Values

CHARACTERS_PER_TOKEN = 4.0  # English prose; used only if no server has counted


class BudgetReached(BakeoffError):
    """The next call might exceed --max-cost, so it was not made. Everything paid for is in the cache."""


@dataclass(slots=True)
class Budget:
    """The budget shared by all contenders and threads."""

    limit: float
    spent: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, dollars: float | None, who: str = "") -> None:
        """Reserves a call's estimated cost, or refuses the call.

        None is an unknown price, with which a limit can't be enforced.
        """
        if dollars is None:
            raise BudgetReached(
                f"no price is known for {who}, so --max-cost can't be enforced: give price = … in its options"
            )
        with self._lock:
            if self.spent + dollars > self.limit:
                raise BudgetReached(
                    f"stopped before ${_dollars(self.limit)} would be passed (${self.spent:.4f} spent); "
                    "what was paid for is in the cache, run again with a higher --max-cost to go on"
                )
            self.spent += dollars

    def settle(self, reserved: float, actual: float) -> None:
        """Replaces the estimate by the actual cost."""
        with self._lock:
            self.spent += actual - reserved


def _dollars(limit: float) -> str:
    """A dollar amount with two decimals, or more if needed."""
    return f"{limit:.2f}" if limit == round(limit, 2) else f"{limit:.10f}".rstrip("0")


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
