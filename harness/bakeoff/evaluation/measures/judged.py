"""How much of a ranking somebody has judged: the share that the other measures know anything about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.evaluation.graded_run import GradedRun, ratio
from bakeoff.evaluation.measures.base import Measure
from bakeoff.evaluation.random_order import RandomOrder


@dataclass(frozen=True)
class Judged(Measure):
    """The share of judged documents among those that came back: a short ranking is not a badly judged one."""

    name: ClassVar = "judged"
    title: ClassVar = "Judged"
    cut: ClassVar = "required"

    @property
    def has_ceiling(self) -> bool:
        """The perfect ranking puts grade 0 last, though it is judged."""
        return False

    def values(self, run: GradedRun) -> Values:
        """Judged documents above the cut-off by all that are there."""
        return ratio(run.ranked.count_above(self.k), np.minimum(run.returned, run.cut(self.k)))

    def expected(self, order: RandomOrder) -> Values:
        """Every place holds a judged document with the same chance."""
        share: Values = np.count_nonzero(order.ideal >= 0, axis=1) / order.documents
        return share
