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
    """The share of judged documents among those that matched: a short ranking is not a badly judged one.

    What a ranker filled up with is no answer that anybody should grade, so it does not count here.
    """

    name: ClassVar = "judged"
    title: ClassVar = "Judged"
    diagnostic: ClassVar = True
    cut: ClassVar = "required"

    def values(self, run: GradedRun) -> Values:
        """Judged documents above the cut-off by all that matched there; 1 where nothing did, as nothing is open."""
        grades = run.grades.grades
        matched = np.minimum(run.returned if run.grades.found is None else run.grades.found, run.cut(self.k))
        there = np.arange(grades.shape[1]) < matched[:, None]
        return np.where(matched > 0, ratio(np.count_nonzero((grades >= 0) & there, axis=1), matched), 1.0)

    def expected(self, order: RandomOrder) -> Values:
        """Every place holds a judged document with the same chance."""
        share: Values = np.count_nonzero(order.ideal >= 0, axis=1) / order.documents
        return share
