"""Measures based on a user model: expected reciprocal rank, rank-biased precision and its residual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.evaluation.graded_run import GradedRun
from bakeoff.evaluation.measures.base import CondensableMeasure, Measure, Rel
from bakeoff.evaluation.random_order import RandomOrder

HIGHEST = 50  # 2 to this power is exact in double precision


@dataclass(frozen=True)
class ExpectedReciprocalRank(CondensableMeasure):
    """1 / rank at which a reader is satisfied, on average: a document of grade g does it with (2^g − 1) / 2^max.

    `max` is the scale's highest grade; 4 is what TREC's gdeval takes.
    """

    name: ClassVar = "err"
    title: ClassVar = "ERR"
    monotone: ClassVar = True

    max: Annotated[int, "the highest grade of the scale"] = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.max <= HIGHEST:
            raise InputError(
                f"measure {self.name!r}: max={self.max} is not a valid highest grade", remedy=f"give 1 to {HIGHEST}"
            )

    def values(self, run: GradedRun) -> Values:
        """Each document counts for the users not satisfied by a document above it."""
        return run.ranked.sum_above(self.k, ("err", self.max), lambda: self._stop_chances(run))

    def _stop_chances(self, run: GradedRun) -> Values:
        places = run.ranked
        satisfied = self._satisfaction_chances(places.grades)
        left = np.ones(places.shape[0])
        stopped = np.empty(len(satisfied))
        for nth in range(1, places.ordinal.max(initial=0) + 1):
            here = np.flatnonzero(places.ordinal == nth)
            rows = places.rows[here]
            stopped[here] = left[rows] * satisfied[here] / places.ranks[here]
            left[rows] *= 1 - satisfied[here]
        return stopped

    def expected(self, order: RandomOrder) -> Values:
        """Uses the chance that no document above a place satisfied the user, averaged over possible documents."""
        values = np.zeros(len(order.ideal))
        unsatisfied = 1 - self._satisfaction_chances(np.maximum(order.ideal, 0))
        places = order.places(self.k)
        for row, misses in enumerate(unsatisfied):
            means = _symmetric_means(misses[misses < 1])
            if len(means) > 1:
                left = np.array([chances @ means for chances in order.draws(len(means) - 1, places + 1)])
                values[row] = (-np.diff(left) / np.arange(1, places + 1)).sum()
        return values

    def _satisfaction_chances(self, grades: NDArray[Any]) -> Values:
        if grades.max(initial=0) > self.max:
            raise InputError(
                f"measure {self.name!r}: grade {grades.max()} is above max={self.max}",
                remedy=f"give the highest grade: {self.name}(max={grades.max()})",
            )
        chance: Values = (np.exp2(grades.astype(np.float64)) - 1) / 2.0**self.max
        return chance


def _symmetric_means(values: Values) -> Values:
    """For 0, 1, … values, the mean product of that many of them."""
    means = np.ones(1)
    for value in values:
        count = len(means)
        drawn = np.arange(count + 1)
        means = ((count - drawn) * np.append(means, 0.0) + drawn * value * np.append(0.0, means)) / count
    return means


@dataclass(frozen=True)
class RankBiasedPrecision(CondensableMeasure):
    """A reader looks at the next document with probability p: the relevant share of what they look at."""

    name: ClassVar = "rbp"
    title: ClassVar = "RBP"
    monotone: ClassVar = True

    p: Annotated[float, "chance that a user continues to the next place"] = 0.8
    rel: Rel = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_persistence(self.name, self.p)

    def values(self, run: GradedRun) -> Values:
        """The weights of the hits above the cut-off."""
        return run.relevant(self.rel).sum_weights(self.k, ("rbp", self.p), lambda ranks: weights(ranks, self.p))

    def expected(self, order: RandomOrder) -> Values:
        """Every place is equally likely to hold a relevant document."""
        return order.relevant(self.rel) / order.documents * (1 - self.p ** order.places(self.k))


@dataclass(frozen=True)
class RankBiasedResidual(Measure):
    """What `rbp` would gain if every unjudged place, including those below the cut-off, held a relevant document."""

    name: ClassVar = "rbp_residual"
    title: ClassVar = "RBP residual"
    diagnostic: ClassVar = True

    p: Annotated[float, "chance that a user continues to the next place"] = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        check_persistence(self.name, self.p)

    def values(self, run: GradedRun) -> Values:
        """1 minus the weights of the judged places."""
        places = run.ranked
        return 1 - places.sum_above(self.k, ("judged rbp", self.p), lambda: weights(places.ranks, self.p))

    def expected(self, order: RandomOrder) -> Values:
        """Every place is equally likely to hold a judged document."""
        judged = order.relevant(None) + order.irrelevant(None)
        return 1 - judged / order.documents * (1 - self.p ** order.places(self.k))


def weights(ranks: NDArray[Any], p: float) -> Values:
    """The chance that a user stops at each rank. The weights sum to 1."""
    stops: Values = (1 - p) * p ** (ranks - 1.0)
    return stops


def check_persistence(name: str, p: float) -> None:
    """Refuses a user who never stops or never starts."""
    if not 0 < p < 1:
        raise InputError(f"measure {name!r}: p={p:g} is not between 0 and 1", remedy="give for example p=0.8")
