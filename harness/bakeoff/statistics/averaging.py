"""What a mean is taken over: the queries as they are, or the traffic that drawn queries stand for.

Every table of a result asks one of these two for its means, intervals and tests, so that they can't mix them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.core.figures import PairedDifference
from bakeoff.core.task import Drawn
from bakeoff.statistics import stratified
from bakeoff.statistics.columns import affordable, differences_of, table_of
from bakeoff.statistics.compare import (
    Outlook,
    compare_nearest,
    outlook,
    shown_pairs,
    tied_pairs,
    tied_with_best,
)
from bakeoff.statistics.constants import NOISE, SEED
from bakeoff.statistics.effects import wins_ties_losses
from bakeoff.statistics.equivalence import equivalence_tests
from bakeoff.statistics.intervals import RESAMPLES, resamples_of
from bakeoff.statistics.small_samples import doubt, mean_intervals
from bakeoff.statistics.stratified import Strata
from bakeoff.statistics.tests import holm_of_distinct, holm_of_pairs, hypothesis_of, sign_flip_tests, wilcoxon


class Winning(NamedTuple):
    """`probability`: the share of resampled sets of queries on which it is best, equals sharing it.

    `regret`: how far its mean is below the best one's in such a set, on average.
    """

    probability: float
    regret: float


def winning(scores: Mapping[str, Values], *, resamples: int = RESAMPLES, seed: int = SEED) -> dict[str, Winning]:
    """For each contender, over bootstrap resamples of the queries that all share."""
    if not scores:
        return {}
    table = table_of(list(scores.values()))
    n, shared, regret, drawn = len(table), np.zeros(table.shape[1]), np.zeros(table.shape[1]), 0
    for counts in resamples_of(n, affordable(resamples, n), seed):
        means = counts @ table / n
        behind = means.max(axis=1, keepdims=True) - means
        leading = behind <= NOISE
        shared += (leading / leading.sum(axis=1, keepdims=True)).sum(axis=0)
        regret += np.where(leading, 0.0, behind).sum(axis=0)
        drawn += len(means)
    return {label: Winning(float(shared[at] / drawn), float(regret[at] / drawn)) for at, label in enumerate(scores)}


WEIGHTED = "per query asked: weighted by traffic"

Scores = Mapping[str, Values]
Mask = NDArray[np.bool_]


class Averaging(Protocol):
    """Means over queries, and what can be said of them."""

    @property
    def weights(self) -> Values | None:
        """Each query's share; None where all count alike."""

    def mean(self, values: Values, where: Mask | None = None) -> float:
        """Of all queries, or of some."""

    def intervals(
        self, table: Values, bounded: bool | Sequence[bool] = True, where: Mask | None = None
    ) -> tuple[Values, Values]:
        """Low and high end for the mean of each column; `bounded` are measures from 0 to 1, here and below.

        `where` leaves queries out.
        """

    def pairs(
        self, scores: Scores, *, among: Collection[str] | None = None, bounded: bool = True
    ) -> list[PairedDifference]:
        """All pairs of contenders; of very many, those with the best and of neighbours. Holm's correction is over all.

        `among` asks for every pair of these instead, with the same correction.
        """

    def tied(self, scores: Scores) -> dict[str, bool]:
        """For each contender, whether it can't be told from the best."""

    def outlook(self, scores: Scores, best: str | None) -> Outlook | None:
        """What these queries can tell of the best and its nearest rival."""

    def p_zero(self, table: Values) -> Values:
        """For each column, p of its mean being 0."""

    def p_equivalent(self, differences: Sequence[Values], margin: float, *, bounded: bool = True) -> Values:
        """Holm-adjusted p of each mean being within the margin of 0."""

    def winning(self, scores: Scores) -> dict[str, Winning]:
        """How often each contender would be the best."""

    def linear(self, values: Values) -> Values:
        """Values whose plain mean and standard error are those of this averaging, for what knows plain ones only."""


@dataclass(frozen=True, slots=True)
class PerQuery:
    """Every query counts alike."""

    seed: int = SEED

    @property
    def weights(self) -> Values | None:
        """All alike."""
        return None

    def mean(self, values: Values, where: Mask | None = None) -> float:
        """The plain mean."""
        return float((values if where is None else values[where]).mean())

    def intervals(
        self, table: Values, bounded: bool | Sequence[bool] = True, where: Mask | None = None
    ) -> tuple[Values, Values]:
        """BCa, or what few queries allow."""
        return mean_intervals(table if where is None else table[where], bounded=bounded, seed=self.seed)

    def pairs(
        self, scores: Scores, *, among: Collection[str] | None = None, bounded: bool = True
    ) -> list[PairedDifference]:
        """Randomisation tests, Holm over all."""
        return compare_nearest(scores, among, bounded=bounded, seed=self.seed)

    def tied(self, scores: Scores) -> dict[str, bool]:
        """By the same tests."""
        return tied_with_best(scores, self.seed)

    def outlook(self, scores: Scores, best: str | None) -> Outlook | None:
        """By simulation of Holm's steps."""
        return outlook(scores, best, self.seed)

    def p_zero(self, table: Values) -> Values:
        """Randomisation tests."""
        return sign_flip_tests(table, seed=self.seed)

    def p_equivalent(self, differences: Sequence[Values], margin: float, *, bounded: bool = True) -> Values:
        """Two one-sided tests: Student's, or what few queries allow."""
        return equivalence_tests(differences, margin, bounded=bounded)

    def winning(self, scores: Scores) -> dict[str, Winning]:
        """Over resampled queries."""
        return winning(scores, seed=self.seed)

    def linear(self, values: Values) -> Values:
        """Themselves."""
        return values


@dataclass(frozen=True, slots=True)
class PerQueryAsked:
    """Every query counts as often as its part of the traffic asks; errors know how the queries were drawn."""

    strata: Strata
    seed: int = SEED

    @property
    def weights(self) -> Values | None:
        """Shares of the traffic."""
        return self.strata.weights

    def mean(self, values: Values, where: Mask | None = None) -> float:
        """Weighted by traffic, or by the traffic of some."""
        weights = self.strata.weights
        return float(weights @ values if where is None else weights[where] @ values[where] / weights[where].sum())

    def intervals(
        self, table: Values, bounded: bool | Sequence[bool] = True, where: Mask | None = None
    ) -> tuple[Values, Values]:
        """The stratified estimate's, or what few queries allow; unknown for some queries, as strata are drawn whole."""
        if where is not None:
            return np.full(table.shape[1], np.nan), np.full(table.shape[1], np.nan)
        return stratified.mean_intervals(table, self.strata, bounded)

    def pairs(
        self, scores: Scores, *, among: Collection[str] | None = None, bounded: bool = True
    ) -> list[PairedDifference]:
        """Stratified t-tests, Holm over all; Wilcoxon's test and the wins are of the drawn queries, unweighted."""
        names, table = list(scores), table_of(list(scores.values()))
        indices = list(combinations(range(len(names)), 2))
        if not indices:
            return []
        p = stratified.p_of_pairs(table, indices, self.strata)
        adjusted = dict(zip(indices, holm_of_pairs(p, table, indices).tolist(), strict=True))
        return [
            self._pair((names[i], names[j]), table[:, i], table[:, j], adjusted[i, j], bounded=bounded)
            for i, j in shown_pairs(names, self.strata.weights @ table, indices, among)
        ]

    def _pair(self, labels: tuple[str, str], a: Values, b: Values, p_holm: float, *, bounded: bool) -> PairedDifference:
        d = differences_of(a, b)
        estimate, effect = stratified.estimate(d, self.strata), stratified.effect_size(a, b, self.strata)
        wins, ties, losses = wins_ties_losses(d)
        low, high = stratified.difference_interval(d, self.strata, bounded=bounded)
        known = np.isfinite(low)
        return PairedDifference(
            a=labels[0], b=labels[1], difference=estimate.mean, low=low if known else None,
            high=high if known else None, p=estimate.p, p_holm=p_holm, t_p=estimate.p, wilcoxon_p=wilcoxon(d),
            effect=effect if np.isfinite(effect) else None, wins=wins, ties=ties, losses=losses, doubt=doubt(d),
        )  # fmt: skip

    def tied(self, scores: Scores) -> dict[str, bool]:
        """By the same tests."""
        names, table = list(scores), np.stack(list(scores.values()), axis=1) if scores else np.empty((0, 0))
        indices = list(combinations(range(len(names)), 2))
        if not indices:
            return dict.fromkeys(names, True)
        adjusted = holm_of_pairs(stratified.p_of_pairs(table, indices, self.strata), table, indices)
        return tied_pairs(names, self.strata.weights @ table, indices, adjusted)

    def outlook(self, scores: Scores, best: str | None) -> Outlook | None:
        """For more queries drawn alike; None where the log was drawn whole, or a stratum's error is not known."""
        if not all(np.isfinite(stratified.linearised(values, self.strata)).all() for values in scores.values()):
            return None
        ahead = outlook({label: self.linear(values) for label, values in scores.items()}, best, self.seed)
        return ahead if ahead is None or np.isfinite(ahead.detectable) else None

    def p_zero(self, table: Values) -> Values:
        """Stratified t-tests."""
        return stratified.estimates(table, self.strata)[3]

    def p_equivalent(self, differences: Sequence[Values], margin: float, *, bounded: bool = True) -> Values:
        """Two one-sided stratified t-tests, or what few queries allow; equal differences are one hypothesis."""
        p = [stratified.p_equivalent(d, self.strata, margin, bounded=bounded) for d in differences]
        return holm_of_distinct(p, [hypothesis_of(d) or b"" for d in differences])

    def winning(self, scores: Scores) -> dict[str, Winning]:
        """Over resampled values that have the strata's means and errors."""
        return winning({label: self.linear(values) for label, values in scores.items()}, seed=self.seed)

    def linear(self, values: Values) -> Values:
        """The linearised ones; where a stratum's error is not known, the drawn ones around the weighted mean."""
        alike = stratified.linearised(values, self.strata)
        return alike if np.isfinite(alike).all() else values - values.mean() + self.mean(values)


def averaging_of(drawn: Sequence[Drawn | None], seed: int = SEED) -> Averaging:
    """By traffic where every query says what it stands for, else plain. Shares of some queries are made shares of 1."""
    known = [each for each in drawn if each is not None]
    if not known or len(known) < len(drawn):
        return PerQuery(seed)
    weights = np.array([each.weight for each in known])
    strata = Strata(weights / weights.sum(), [each.stratum for each in known], [each.of for each in known])
    return PerQueryAsked(strata, seed)
