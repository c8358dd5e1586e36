"""How much of what was found was out of date on the day that the query asks about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.arrays import Values
from bakeoff.evaluation.graded_run import GradedRun, ratio
from bakeoff.evaluation.measures.base import Measure
from bakeoff.evaluation.random_order import RandomOrder


@dataclass(frozen=True)
class Stale(Measure):
    """The share of documents out of date among those that matched: lower is better, 0 where nothing matched.

    Not a number for a query without `as_of`, which then counts in no mean.
    """

    name: ClassVar = "stale"
    title: ClassVar = "Stale"
    diagnostic: ClassVar = True
    cut: ClassVar = "required"
    reads_dates: ClassVar = True

    def values(self, run: GradedRun) -> Values:
        """Documents out of date above the cut-off by all that matched there."""
        places = run.grades.stale
        if places is None:
            raise _no_dates(self)
        matched = np.minimum(run.returned if run.grades.found is None else run.grades.found, run.cut(self.k))
        there = np.arange(places.stale.shape[1]) < matched[:, None]
        shares = ratio(np.count_nonzero(places.stale & there, axis=1), matched)
        return np.where(places.time_bound, shares, np.nan)

    def expected(self, order: RandomOrder) -> Values:
        """Every place holds a document out of date with the same chance."""
        if order.stale is None:
            raise _no_dates(self)
        return order.stale


def _no_dates(measure: Stale) -> InputError:
    return InputError(
        f"{measure} needs the dates of a task, which runs and grades do not have",
        remedy=f"add {measure} to the measures of a line-up and run it",
    )
