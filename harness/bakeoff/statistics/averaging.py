"""What a mean is taken over: the queries as they are, or the traffic that drawn queries stand for.

Every table of a result asks one of these two for its means, intervals and tests, so that they can't mix them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.core.figures import PairedDifference
from bakeoff.core.task import Drawn
from bakeoff.statistics import stratified
from bakeoff.statistics.best_set import BestSet, best_set
from bakeoff.statistics.columns import Pairs, across, differences_of, table_of, without_noise
from bakeoff.statistics.compare import compare, finite, tested_pairs
from bakeoff.statistics.constants import NOISE, SEED
from bakeoff.statistics.effects import wins_ties_losses
from bakeoff.statistics.equivalence import equivalence_tests
from bakeoff.statistics.guarded import WORST, Differences, guarded_differences
from bakeoff.statistics.incumbent import Versus, versus
from bakeoff.statistics.small_samples import doubt, mean_intervals
from bakeoff.statistics.stratified import Strata, is_whole
from bakeoff.statistics.tests import sign_flip_tests, wilcoxon

Scores = Mapping[str, Values]
Mask = NDArray[np.bool_]


class Averaging(Protocol):
    """Means over queries, and what can be said of them; `bounded` are measures from 0 to 1."""

    @property
    def weights(self) -> Values | None:
        """Each query's share; None where all count alike."""

    def mean(self, values: Values, where: Mask | None = None) -> float:
        """Of all queries, or of some."""

    def intervals(
        self, table: Values, bounded: bool | Sequence[bool] = True, where: Mask | None = None
    ) -> tuple[Values, Values]:
        """Low and high end for the mean of each column; `where` leaves queries out."""

    def pairs(
        self, scores: Scores, *, among: Collection[str] | None = None, bounded: bool = True
    ) -> list[PairedDifference]:
        """All pairs of contenders; of very many, those with the best and of neighbours. Holm's correction is over all.

        `among` asks for every pair of these instead, with the same correction.
        """

    def differences(self, table: Values, pairs: Pairs, *, bounded: bool = True) -> Differences:
        """Interval and p of the mean difference of each pair of columns."""

    def best_set(self, table: Values, *, bounded: bool = True) -> BestSet:
        """Which columns may have the highest mean."""

    def versus(self, table: Values, incumbent: int, *, bounded: bool = True) -> Versus:
        """Every column against one."""

    def p_zero(self, table: Values) -> Values:
        """For each column, p of its mean being 0."""

    def p_equivalent(self, differences: Sequence[Values], margin: float, *, bounded: bool = True) -> Values:
        """Holm-adjusted p of each mean being within the margin of 0."""

    def linear(self, values: Values) -> Values:
        """Values whose plain mean and standard error are those of this averaging, for what knows plain ones only."""

    @property
    def heaviest(self) -> float:
        """How much more than the average query the one with the largest share counts."""

    @property
    def has_error(self) -> bool:
        """Whether means have an error that is known; a log that was drawn whole has none."""


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
        """Exact ones; of measures without bounds what BCa and Student's span."""
        return mean_intervals(table if where is None else table[where], bounded=bounded, seed=self.seed)

    def pairs(
        self, scores: Scores, *, among: Collection[str] | None = None, bounded: bool = True
    ) -> list[PairedDifference]:
        """By samples that are guarded against rare failures."""
        return compare(scores, among, bounded=bounded)

    def differences(self, table: Values, pairs: Pairs, *, bounded: bool = True) -> Differences:
        """By the same samples."""
        return guarded_differences(table, pairs, bounded=bounded)

    def best_set(self, table: Values, *, bounded: bool = True) -> BestSet:
        """By max-T."""
        return best_set(table, bounded=bounded, seed=self.seed)

    def versus(self, table: Values, incumbent: int, *, bounded: bool = True) -> Versus:
        """By max-T."""
        return versus(table, incumbent, bounded=bounded, seed=self.seed)

    def p_zero(self, table: Values) -> Values:
        """Randomisation tests."""
        return sign_flip_tests(table, seed=self.seed)

    def p_equivalent(self, differences: Sequence[Values], margin: float, *, bounded: bool = True) -> Values:
        """Two one-sided tests, each with an imagined failure."""
        return equivalence_tests(differences, margin, worst=WORST if bounded else None)

    def linear(self, values: Values) -> Values:
        """Themselves."""
        return values

    @property
    def heaviest(self) -> float:
        """All alike."""
        return 1.0

    @property
    def has_error(self) -> bool:
        """Others might have been asked."""
        return True


@dataclass(frozen=True)
class PerQueryAsked:
    """Every query counts as often as its part of the traffic asks; errors know how the queries were drawn.

    Tests are those of plain queries, on linearised values. Where one query stands for a stratum of several, nothing is
    known of the error, and nothing can be told apart.
    """

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
        """Exact ones by stratum; unknown for some queries, as strata are drawn whole."""
        if where is not None:
            return np.full(table.shape[1], np.nan), np.full(table.shape[1], np.nan)
        return stratified.mean_intervals(table, self.strata, bounded)

    def pairs(
        self, scores: Scores, *, among: Collection[str] | None = None, bounded: bool = True
    ) -> list[PairedDifference]:
        """Student's test is the strata's; Wilcoxon's and the wins are of the drawn queries, unweighted."""
        table = table_of(list(scores.values()))

        def pair(i: int, j: int) -> PairedDifference:
            d = differences_of(table[:, i], table[:, j])
            wins, ties, losses = wins_ties_losses(d)
            plain = stratified.estimate(d, self.strata)
            effect = stratified.effect_size(table[:, i], table[:, j], self.strata)
            return PairedDifference(
                a="", b="", difference=plain.mean, low=None, high=None, p=1.0, p_holm=1.0, t_p=plain.p,
                wilcoxon_p=wilcoxon(d), effect=finite(effect), wins=wins, ties=ties, losses=losses, doubt=doubt(d),
            )  # fmt: skip

        return tested_pairs(
            list(scores),
            table,
            self.strata.weights @ table if len(table) else table,
            among,
            pair,
            lambda pairs: self.differences(table, pairs, bounded=bounded),
        )

    def differences(self, table: Values, pairs: Pairs, *, bounded: bool = True) -> Differences:
        """Guarded; a log that was drawn whole leaves nothing open."""
        if self.has_error:
            return guarded_differences(self._linear(table), pairs, bounded=bounded, heaviest=self.heaviest)
        apart = without_noise(across(self.strata.weights @ table, pairs))
        if self._whole:
            return Differences(apart, apart, np.where(apart == 0, 1.0, 0.0))
        unknown = np.full(len(apart), np.nan)
        return Differences(unknown, unknown, np.ones(len(apart)))

    def best_set(self, table: Values, *, bounded: bool = True) -> BestSet:
        """On linearised values."""
        if self.has_error:
            return best_set(self._linear(table), bounded=bounded, heaviest=self.heaviest, seed=self.seed)
        means = self.strata.weights @ table
        behind = without_noise(means.max() - means)
        if self._whole:
            return BestSet(behind == 0, np.where(behind == 0, 1.0, 0.0), behind, behind)
        every = np.ones(len(means), dtype=bool)
        return BestSet(every, np.ones(len(means)), np.zeros(len(means)), np.full(len(means), np.inf))

    def versus(self, table: Values, incumbent: int, *, bounded: bool = True) -> Versus:
        """On linearised values."""
        if self.has_error:
            linear = self._linear(table)
            return versus(linear, incumbent, bounded=bounded, heaviest=self.heaviest, seed=self.seed)
        means = self.strata.weights @ table
        leads = without_noise(means - means[incumbent])
        if self._whole:
            return Versus(leads, leads, leads, np.where(leads > 0, 0.0, 1.0), np.where(leads < 0, 0.0, 1.0))
        no_bound, ones = np.full(len(means), np.inf), np.ones(len(means))
        return Versus(leads, -no_bound, no_bound, ones, ones)

    def p_zero(self, table: Values) -> Values:
        """Stratified t-tests."""
        return stratified.estimates(table, self.strata)[3]

    def p_equivalent(self, differences: Sequence[Values], margin: float, *, bounded: bool = True) -> Values:
        """Two one-sided tests; an imagined failure has the largest share of the traffic."""
        if self._whole:
            return np.array([float(abs(self.mean(d)) > margin + NOISE) for d in differences])
        if not self.has_error:
            return np.ones(len(differences))
        worst = self.heaviest if bounded else None
        return equivalence_tests([self.linear(d) for d in differences], margin, worst=worst)

    def linear(self, values: Values) -> Values:
        """The linearised ones; where a stratum's error is not known, the drawn ones around the weighted mean."""
        alike = stratified.linearised(values, self.strata)
        return alike if np.isfinite(alike).all() else values - values.mean() + self.mean(values)

    def _linear(self, table: Values) -> Values:
        return np.stack([self.linear(values) for values in table.T], axis=1)

    @property
    def heaviest(self) -> float:
        """By the weights."""
        return float(self.strata.weights.max() * len(self.strata.weights))

    @cached_property
    def _whole(self) -> bool:
        return is_whole(self.strata)

    @cached_property
    def has_error(self) -> bool:
        """Every stratum is drawn in part by at least two queries, or whole, but not all of them whole."""
        known = np.isfinite(stratified.linearised(np.zeros(len(self.strata.weights)), self.strata)).all()
        return bool(known) and not self._whole


def averaging_of(drawn: Sequence[Drawn | None], seed: int = SEED) -> Averaging:
    """By traffic where every query says what it stands for, else plain. Shares of some queries are made shares of 1."""
    known = [each for each in drawn if each is not None]
    if not known or len(known) < len(drawn):
        return PerQuery(seed)
    weights = np.array([each.weight for each in known])
    strata = Strata(weights / weights.sum(), [each.stratum for each in known], [each.of for each in known])
    return PerQueryAsked(strata, seed)
