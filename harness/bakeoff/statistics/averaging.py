"""What a mean is taken over: the queries themselves, or the traffic that sampled queries represent.

Every table of a result uses the same one of these for its means, intervals and tests. Queries that ask for the same
thing form a cluster, which is one unit in every interval and test. Clusters do not affect the means.
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
from bakeoff.core.task import Drawn, Task
from bakeoff.statistics import stratified
from bakeoff.statistics.best_set import BestSet, Versus, best_set, versus
from bakeoff.statistics.columns import Pairs, across, differences_of, spread, table_of, without_noise
from bakeoff.statistics.compare import compare, compare_pairs, equivalence_tests, finite, wins_ties_losses
from bakeoff.statistics.constants import NOISE, SEED
from bakeoff.statistics.guarded import WORST, Differences, guard_differences, queries_for_equivalence
from bakeoff.statistics.small_samples import doubt, mean_intervals
from bakeoff.statistics.stratified import ENDLESS, Strata, is_whole, units_of
from bakeoff.statistics.tests import sign_flip_tests, wilcoxon

ScoresByName = Mapping[str, Values]
Mask = NDArray[np.bool_]


class Averaging(Protocol):
    """Means over queries and their statistics. `bounded` measures are from 0 to 1."""

    @property
    def seed(self) -> int:
        """The seed of its tests."""

    @property
    def weights(self) -> Values | None:
        """Each query's share; None if all are equal."""

    @property
    def clusters(self) -> int:
        """The number of clusters; 0 if every query is its own."""

    def count_units(self, where: Mask) -> int:
        """The number of these queries, or of the clusters that they are in."""

    def number_units(self, queries: int, /) -> NDArray[np.intp]:
        """Each query's unit number: its own, or its cluster's."""

    def mean(self, values: Values, where: Mask | None = None) -> float:
        """The mean over all queries, or over some."""

    def intervals(
        self, table: Values, bounded: bool | Sequence[bool] = True, where: Mask | None = None
    ) -> tuple[Values, Values]:
        """The low and high ends of the interval of each column's mean. `where` selects queries."""

    def pairs(
        self, scores: ScoresByName, *, among: Collection[str] | None = None, bounded: bool = True
    ) -> list[PairedDifference]:
        """All pairs of contenders; if there are very many, only those with the best and neighbours.

        `among` requests every pair of these instead. Holm's correction is over all pairs.
        """

    def differences(self, table: Values, pairs: Pairs, *, bounded: bool = True) -> Differences:
        """Interval and p of the mean difference of each pair of columns."""

    def best_set(self, table: Values, *, bounded: bool = True) -> BestSet:
        """Which columns may have the highest mean."""

    def versus(self, table: Values, incumbent: int, *, bounded: bool = True) -> Versus:
        """Every column compared with one."""

    def p_zero(self, table: Values) -> Values:
        """For each column, the p of its mean being 0."""

    def p_equivalent(self, differences: Sequence[Values], margin: float, *, bounded: bool = True) -> Values:
        """The Holm-adjusted p of each mean being within the margin of 0."""

    def linear(self, values: Values) -> Values:
        """Values whose plain mean and standard error equal this averaging's, for methods that only know plain means.

        One per query or per cluster.
        """

    @property
    def heaviest(self) -> float:
        """The largest share of a query or cluster, divided by the average share."""

    @property
    def has_error(self) -> bool:
        """Whether means have a known error. A fully drawn log has none."""


@dataclass(frozen=True, slots=True)
class PerQuery:
    """Every query counts the same."""

    seed: int = SEED

    @property
    def weights(self) -> Values | None:
        """None: all equal."""
        return None

    @property
    def clusters(self) -> int:
        """None."""
        return 0

    def count_units(self, where: Mask) -> int:
        """Queries."""
        return int(np.count_nonzero(where))

    def number_units(self, queries: int, /) -> NDArray[np.intp]:
        """Its own."""
        return np.arange(queries)

    def mean(self, values: Values, where: Mask | None = None) -> float:
        """The plain mean."""
        return float((values if where is None else values[where]).mean())

    def intervals(
        self, table: Values, bounded: bool | Sequence[bool] = True, where: Mask | None = None
    ) -> tuple[Values, Values]:
        """Exact intervals; for unbounded measures, the hull of BCa's and Student's."""
        return mean_intervals(table if where is None else table[where], bounded=bounded, seed=self.seed)

    def pairs(
        self, scores: ScoresByName, *, among: Collection[str] | None = None, bounded: bool = True
    ) -> list[PairedDifference]:
        """Guarded against rare failures."""
        return compare(scores, among, bounded=bounded)

    def differences(self, table: Values, pairs: Pairs, *, bounded: bool = True) -> Differences:
        """Guarded against rare failures, like `pairs`."""
        return guard_differences(table, pairs, bounded=bounded)

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
        """Equivalence by two one-sided tests (TOST), each with an imagined failed query."""
        return equivalence_tests(differences, margin, worst=WORST if bounded else None)

    def linear(self, values: Values) -> Values:
        """The values themselves."""
        return values

    @property
    def heaviest(self) -> float:
        """1: all equal."""
        return 1.0

    @property
    def has_error(self) -> bool:
        """Always: other queries might have been asked."""
        return True


@dataclass(frozen=True)
class PerQueryAsked:
    """Queries count by their share of the traffic. Errors follow from the sampling design.

    Tests run on linearised values. If one query represents a stratum of several, the error is unknown and no test is
    significant. Without `by_traffic`, all queries count the same, but in clusters.
    """

    strata: Strata
    seed: int = SEED
    by_traffic: bool = True

    @property
    def weights(self) -> Values | None:
        """Shares of the traffic."""
        return self.strata.weights if self.by_traffic else None

    @property
    def clusters(self) -> int:
        """The number of distinct cluster names."""
        return len(set(self.strata.clusters))

    def count_units(self, where: Mask) -> int:
        """Queries, or clusters."""
        return len(np.unique(units_of(self.strata)[where]))

    def number_units(self, _queries: int, /) -> NDArray[np.intp]:
        """Its own, or that of its cluster."""
        return units_of(self.strata)

    def mean(self, values: Values, where: Mask | None = None) -> float:
        """Weighted by traffic, or by the traffic of some queries."""
        weights = self.strata.weights
        return float(weights @ values if where is None else weights[where] @ values[where] / weights[where].sum())

    def intervals(
        self, table: Values, bounded: bool | Sequence[bool] = True, where: Mask | None = None
    ) -> tuple[Values, Values]:
        """Exact ones by stratum; unknown for some queries by traffic, as strata are drawn whole."""
        if where is not None and self.by_traffic:
            return np.full(table.shape[1], np.nan), np.full(table.shape[1], np.nan)
        if where is not None:
            some = [name for name, inside in zip(self.strata.clusters, where, strict=True) if inside]
            return _by_cluster(some, self.seed).intervals(table[where], bounded)
        return stratified.mean_intervals(table, self.strata, bounded)

    def pairs(
        self, scores: ScoresByName, *, among: Collection[str] | None = None, bounded: bool = True
    ) -> list[PairedDifference]:
        """Student's test is stratified; Wilcoxon's uses the sampled queries or clusters unweighted."""
        table = table_of(list(scores.values()))

        def pair(i: int, j: int) -> PairedDifference:
            d = differences_of(table[:, i], table[:, j])
            wins, ties, losses = wins_ties_losses(d)
            plain = stratified.estimate(d, self.strata)
            effect = stratified.effect_size(table[:, i], table[:, j], self.strata)
            units = without_noise(self.linear(d)) if self.clusters else d
            return PairedDifference(
                a="", b="", difference=plain.mean, low=None, high=None, p=1.0, p_holm=1.0, t_p=plain.p,
                wilcoxon_p=wilcoxon(units), effect=finite(effect), wins=wins, ties=ties, losses=losses,
                doubt=doubt(units),
            )  # fmt: skip

        return compare_pairs(
            list(scores),
            table,
            self.strata.weights @ table if len(table) else table,
            among,
            pair,
            lambda pairs: self.differences(table, pairs, bounded=bounded),
        )

    def differences(self, table: Values, pairs: Pairs, *, bounded: bool = True) -> Differences:
        """Guarded. A fully drawn log has no uncertainty."""
        if self.has_error:
            return guard_differences(self._linear(table), pairs, bounded=bounded, heaviest=self.heaviest)
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
        """Stratified t-tests; randomisation tests of clusters."""
        if self.clusters and self.has_error:
            return sign_flip_tests(self._linear(table), seed=self.seed)
        return stratified.estimates(table, self.strata)[3]

    def p_equivalent(self, differences: Sequence[Values], margin: float, *, bounded: bool = True) -> Values:
        """Two one-sided tests. An imagined failure has the largest share of the traffic."""
        if self._whole:
            return np.array([float(abs(self.mean(d)) > margin + NOISE) for d in differences])
        if not self.has_error:
            return np.ones(len(differences))
        worst = self.heaviest if bounded else None
        return equivalence_tests([self.linear(d) for d in differences], margin, worst=worst)

    def linear(self, values: Values) -> Values:
        """The linearised values; if a stratum's error is unknown, the raw ones around the weighted mean."""
        alike = stratified.linearise(values, self.strata)
        return alike if np.isfinite(alike).all() else values - values.mean() + self.mean(values)

    def _linear(self, table: Values) -> Values:
        return np.stack([self.linear(values) for values in table.T], axis=1)

    @property
    def heaviest(self) -> float:
        """Computed from the weights."""
        shares = np.bincount(units_of(self.strata), self.strata.weights)
        return float(shares.max() * len(shares))

    @cached_property
    def _whole(self) -> bool:
        return is_whole(self.strata)

    @cached_property
    def has_error(self) -> bool:
        """Every stratum has at least two sampled units or is fully sampled, and not all are fully sampled."""
        known = np.isfinite(stratified.linearise(np.zeros(len(self.strata.weights)), self.strata)).all()
        return bool(known) and not self._whole


def averaging_of(drawn: Sequence[Drawn | None], seed: int = SEED, clusters: Sequence[str] = ()) -> Averaging:
    """Weights by traffic if every query has a share, else equally. Shares of a subset are rescaled to sum to 1.

    A query without a cluster is its own cluster. With clusters, strata are ignored: a cluster may span several strata,
    and ignoring them does not make the error smaller.
    """
    known = [each for each in drawn if each is not None]
    by_traffic = bool(known) and len(known) == len(drawn)
    joined = len(set(filter(None, clusters))) < sum(map(bool, clusters))
    if not by_traffic:
        return _by_cluster(clusters, seed) if joined else PerQuery(seed)
    weights = np.array([each.weight for each in known])
    strata = Strata(weights / weights.sum(), [each.stratum for each in known], [each.of for each in known])
    if joined and not is_whole(strata):
        return _by_cluster(clusters, seed, strata.weights)
    return PerQueryAsked(strata, seed)


def fewest_for_equivalence(pairs: Sequence[tuple[Values, Values]], margin: float, averaging: Averaging) -> int | None:
    """The queries or clusters needed to show that the least variable pair is equivalent; None if no number would do."""
    spreads = [spread(averaging.linear(differences_of(a, b))) for a, b in pairs if len(a) > 1]
    if not spreads or not averaging.has_error:
        return None
    return queries_for_equivalence(margin, min(spreads), worst=averaging.heaviest)


def task_averaging(task: Task, seed: int = SEED) -> Averaging:
    """What the means of a task are taken over."""
    return averaging_of(
        [query.drawn for query in task.queries], seed, clusters=[query.cluster for query in task.queries]
    )


def _by_cluster(clusters: Sequence[str], seed: int, weights: Values | None = None) -> PerQueryAsked:
    n = len(clusters)
    own = [f"={name}" if name else str(at) for at, name in enumerate(clusters)]
    shares = np.full(n, 1 / n) if weights is None else weights
    return PerQueryAsked(Strata(shares, [""] * n, [ENDLESS] * n, own), seed, by_traffic=weights is not None)
