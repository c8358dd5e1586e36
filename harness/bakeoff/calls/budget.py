"""Dollars that a command may spend: reserved before a call by its estimate, settled by what it really cost."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from bakeoff_providers.errors import BakeoffError


class BudgetReached(BakeoffError):
    """The next call might pass --max-cost, so it was not made; everything paid for so far is in the cache."""


@dataclass(slots=True)
class Budget:
    """Dollars that may still be spent, shared by all contenders and threads."""

    limit: float
    spent: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, dollars: float | None, who: str = "") -> None:
        """Takes the estimate of a call out of the budget, or refuses before the call is made.

        None is a price that nobody knows: a limit can't be kept with it.
        """
        if dollars is None:
            raise BudgetReached(
                f"no price is known for {who}, so --max-cost can't be kept: give price = … in its options"
            )
        with self._lock:
            if self.spent + dollars > self.limit:
                raise BudgetReached(
                    f"stopped before ${_dollars(self.limit)} would be passed (${self.spent:.4f} spent); "
                    "what was paid for is in the cache, run again with a higher --max-cost to go on"
                )
            self.spent += dollars

    def settle(self, reserved: float, actual: float) -> None:
        """Puts the real price in the place of the estimate."""
        with self._lock:
            self.spent += actual - reserved


def _dollars(limit: float) -> str:
    """As it was given: in cents, unless that is not all of it."""
    return f"{limit:.2f}" if limit == round(limit, 2) else f"{limit:.10f}".rstrip("0")
