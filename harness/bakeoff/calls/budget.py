"""Token estimates, prices and the budget: a call's estimate is reserved and settled at the actual cost."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from bakeoff_providers.errors import BakeoffError

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
    """As it was given: in cents, unless that is not all of it."""
    return f"{limit:.2f}" if limit == round(limit, 2) else f"{limit:.10f}".rstrip("0")
