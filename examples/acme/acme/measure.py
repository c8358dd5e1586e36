"""Enough relevant documents."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from bakeoff.plugins import GradedRun, Measure, RandomOrder, Values


@dataclass(frozen=True)
class Enough(Measure):
    """1 where at least m of the first k documents are relevant."""

    name: ClassVar[str] = "enough"
    title: ClassVar[str] = "Enough"
    monotone: ClassVar[bool] = True

    m: int = 3
    rel: int | None = None

    def values(self, run: GradedRun) -> Values:
        """From the number of relevant documents above the cut-off."""
        return (run.relevant(self.rel).hits(self.k) >= self.m).astype(np.float64)

    def expected(self, order: RandomOrder) -> Values:
        """The chance that so many relevant documents are drawn."""
        return np.array([self._chance(order, int(count)) for count in order.relevant(self.rel)])

    def _chance(self, order: RandomOrder, relevant: int) -> float:
        *_, chances = order.draws(relevant, order.places(self.k) + 1)
        return float(chances[self.m :].sum())
