"""Rank-biased precision (Moffat and Zobel, 2008), and how much of it nobody knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.evaluation.graded_run import GradedRun
from bakeoff.evaluation.measures.base import CondensableMeasure, Measure, Rel
from bakeoff.evaluation.random_order import RandomOrder


@dataclass(frozen=True)
class RankBiasedPrecision(CondensableMeasure):
    """A reader looks at the next document with probability p: the relevant share of what they look at."""

    name: ClassVar = "rbp"
    title: ClassVar = "RBP"
    monotone: ClassVar = True

    p: Annotated[float, "chance that a reader goes on to the next place"] = 0.8
    rel: Rel = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_persistence(self.name, self.p)

    def values(self, run: GradedRun) -> Values:
        """The weights of the hits above the cut-off."""
        return run.relevant(self.rel).weighted(self.k, ("rbp", self.p), lambda ranks: weights(ranks, self.p))

    def expected(self, order: RandomOrder) -> Values:
        """Every place holds a relevant document with the same chance."""
        return order.relevant(self.rel) / order.documents * (1 - self.p ** order.places(self.k))


@dataclass(frozen=True)
class RankBiasedResidual(Measure):
    """What `rbp` would gain if every unjudged place, also those below the cut-off, held a relevant document."""

    name: ClassVar = "rbp_residual"
    title: ClassVar = "RBP residual"
    diagnostic: ClassVar = True

    p: Annotated[float, "chance that a reader goes on to the next place"] = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        check_persistence(self.name, self.p)

    def values(self, run: GradedRun) -> Values:
        """Everything but the weights of the judged places."""
        places = run.ranked
        return 1 - places.sum_above(self.k, ("judged rbp", self.p), lambda: weights(places.ranks, self.p))

    def expected(self, order: RandomOrder) -> Values:
        """Every place holds a judged document with the same chance."""
        judged = order.relevant(None) + order.irrelevant(None)
        return 1 - judged / order.documents * (1 - self.p ** order.places(self.k))


def weights(ranks: NDArray[Any], p: float) -> Values:
    """The chance that a reader stops at each rank; they add up to 1."""
    stops: Values = (1 - p) * p ** (ranks - 1.0)
    return stops


def check_persistence(name: str, p: float) -> None:
    """A reader who never stops, or never starts, has no weights."""
    if not 0 < p < 1:
        raise InputError(f"measure {name!r}: p={p:g} is not between 0 and 1", remedy="give for example p=0.8")
