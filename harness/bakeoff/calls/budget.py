"""The budget in dollars: estimates are reserved before a call and settled at the actual cost."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from bakeoff_providers.errors import BakeoffError


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
                f"no price is known for {who}, so --max-cost can't be kept: give price = … in its options"
            )
        with self._lock:
            if self.spent + dollars > self.limit:
                raise BudgetReached(
                    f"stopped before ${self.limit:.2f} would be passed (${self.spent:.4f} spent); "
                    "what was paid for is in the cache, run again with a higher --max-cost to go on"
                )
            self.spent += dollars

    def settle(self, reserved: float, actual: float) -> None:
        """Replaces the estimate by the actual cost."""
        with self._lock:
            self.spent += actual - reserved
