"""The confidence set of the best row: with 95% confidence the row with the highest true mean is in it.

Each row is tested against all others at once: the largest studentised lead that a rival has over it, among the largest
under random flips of the signs of whole queries (max-T). No correction over the rows is needed, since only the test of
the truly best row can exclude it.

A few queries can't rule out that a rival fails now and then. So each test has two imagined queries on which every rival
scores 0 and the tested row its mean (three if there are many rows).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.statistics.columns import affordable, without_noise
from bakeoff.statistics.constants import ALPHA, SEED
from bakeoff.statistics.tests import first_equal, flip_sums

MANY_ROWS = 30  # with more rows, the luckiest hides more failures
FIRST = 0.1  # share of alpha for a first test against all rows; the second is against those that pass it
FLIPS = 9_999
EXACT_UP_TO = 13  # queries, imagined ones included, for which all flips are enumerated
CELLS = 400_000_000  # rows × rows × flips, for very many rows
FEWEST_FLIPS = 2000
ROUNDING = 1e-9  # of a studentised sum
LARGE = 1e100  # stands for infinity, since inf × 0 is NaN

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class BestSet:
    """For each row: whether it may be the best, the p of that, and how far behind the best it may be.

    `least` and `most` bound the best row's true mean minus this one's, each at the set's confidence level. `least` is 0
    for rows in the set; `most` is 0 for a row that is alone in it.
    """

    within: Mask
    p: Values
    least: Values
    most: Values


def best_set(
    table: Values,
    *,
    bounded: bool = True,
    heaviest: float = 1.0,
    alpha: float = ALPHA,
    flips: int = FLIPS,
    seed: int = SEED,
) -> BestSet:
    """For a table of queries × rows. Only `bounded` measures (0 to 1) get imagined failures.

    With unequal weights, an imagined failure costs `heaviest` times more: the largest weight over the average.
    """
    _, firsts, place = np.unique(first_equal(table), return_index=True, return_inverse=True)
    rows = table[:, firsts]
    imagined = count_imagined(count_near_leader(rows)) if bounded else 0
    flipped = FlippedRows.of(rows, imagined, heaviest, flips, seed)
    levels = FIRST * alpha, (1 - FIRST) * alpha
    everyone = np.ones(len(firsts), dtype=bool)
    before = [flipped.test(row).against(everyone, levels[0]) for row in range(len(firsts))]
    passed = np.array([p > levels[0] for p, _ in before])
    p, least, most = np.ones(len(firsts)), np.zeros(len(firsts)), np.zeros(len(firsts))
    for row in range(len(firsts)):
        test = flipped.test(row)
        after = test.against(passed, levels[1])
        p[row] = min(before[row][0] / FIRST, after[0] / (1 - FIRST), 1.0)
        if p[row] > alpha:
            most = np.maximum(most, test.most_behind(passed, levels[1]))
        else:
            least[row] = max(before[row][1], after[1])
    return BestSet((p > alpha)[place], p[place], least[place], np.minimum(most, 1.0 if bounded else np.inf)[place])


@dataclass(frozen=True, slots=True)
class FlippedRows:
    """Rows and their sums under the flips that all tests share. The last sum covers the imagined queries' signs."""

    table: Values
    imagined: int
    heaviest: float
    sums: Values
    exact: bool

    @classmethod
    def of(cls, table: Values, imagined: int, heaviest: float, flips: int, seed: int) -> FlippedRows:
        """Enumerates all flips for few queries, else draws as many as are affordable."""
        n, rows = table.shape
        padded = np.zeros((n + imagined, rows + 1))
        padded[:n, :rows], padded[n:, rows] = table, 1.0
        if len(padded) <= EXACT_UP_TO:
            return cls(table, imagined, heaviest, all_flips(padded), exact=True)
        flips = min(affordable(flips, n), max(FEWEST_FLIPS, CELLS // rows**2))
        sums = np.concatenate(list(flip_sums(padded, flips, seed)), axis=1)
        return cls(table, imagined, heaviest, sums, exact=False)

    def test(self, row: int) -> RowTest:
        """Tests this row against all others."""
        failure, n = self.heaviest * float(self.table[:, row].mean()), len(self.table) + self.imagined
        leads = without_noise(self.table - self.table[:, [row]])
        sums = leads.sum(axis=0) - self.imagined * failure
        squares = (leads**2).sum(axis=0) + self.imagined * failure**2
        sums[row], squares[row] = 0.0, np.inf  # not its own rival
        flipped = (self.sums[:-1] - self.sums[row] - failure * self.sums[-1]) / np.sqrt(squares)[:, None]
        error = np.sqrt(np.maximum(squares - sums**2 / n, 0.0) / (n * max(n - 1, 1)))
        error[row] = 0.0
        differing = np.count_nonzero(leads, axis=0)
        return RowTest(row, n, sums / n, error, sums / np.sqrt(squares), squares, differing, flipped, self.exact)


@dataclass(frozen=True, slots=True)
class RowTest:
    """Each rival's mean lead over a row with its error, and its studentised form, observed and under flips.

    `squares` is the sum of squared leads, `differing` the number of queries on which a rival's score differs.
    """

    row: int
    n: int
    lead: Values
    error: Values
    observed: Values
    squares: Values
    differing: NDArray[np.int_]
    flipped: Values
    exact: bool

    def against(self, rivals: Mask, level: float) -> tuple[float, float]:
        """The p of this row being the best, and its least gap to the best."""
        near = self.near(rivals)
        if not near.any():
            return 1.0, 0.0
        largest = self.flipped[near].max(axis=0)
        (p,) = share_reaching(largest, self.observed[near].max(keepdims=True) - ROUNDING, exact=self.exact)
        least = self.lead[near] - np.minimum(self._bar(largest, level), LARGE) * self.error[near]
        return float(p), float(least.max())

    def most_behind(self, rivals: Mask, level: float) -> Values:
        """How far every other row can be behind this one at most, if this is the best."""
        near = self.near(rivals)
        largest = self.flipped[near].max(axis=0, initial=-np.inf)
        bar = np.where(near, self._bar(largest, level), 0.0)
        for row in np.flatnonzero(~near & (np.arange(len(near)) != self.row)):
            bar[row] = self._bar(np.maximum(largest, self.flipped[row]), level)
        most: Values = np.maximum(0.0, np.minimum(bar, LARGE) * self.error - self.lead)
        return np.where(np.isinf(bar), np.inf, most)

    def near(self, rivals: Mask) -> Mask:
        """The rivals that are not far behind. Others can't be better and would weaken the test."""
        near: Mask = rivals & is_near(self.observed, self.n)
        near[self.row] = False
        return near

    def _bar(self, largest: Values, level: float) -> float:
        return float(student(bar(largest, level, exact=self.exact), self.n))


def is_near(studentised: Values, n: int, times: int = 1) -> Mask:
    """Whether a row may be as good, by a bound that grows with the queries (Andrews & Soares, 2010)."""
    near: Mask = student(studentised, n) > -times * np.sqrt(np.log(n))
    return near


def count_near_leader(rows: Values) -> int:
    """A generous count, since a leader among many was lucky."""
    leads = without_noise(rows - rows[:, [int(rows.mean(axis=0).argmax())]])
    size = np.sqrt((leads**2).sum(axis=0))
    return 1 + int(is_near(leads.sum(axis=0)[size > 0] / size[size > 0], len(rows), times=2).sum())


def count_imagined(rows: int) -> int:
    """The number of imagined queries on which a row that looks better fails."""
    return 2 if rows < MANY_ROWS else 3


def share_reaching(largest: Values, values: Values, *, exact: bool) -> Values:
    """p: the share of flips that reach each value. If flips were drawn, the observed one counts too."""
    reached = len(largest) - np.searchsorted(np.sort(largest), values)
    p: Values = reached / len(largest) if exact else (reached + 1) / (len(largest) + 1)
    return p


def bar(largest: Values, level: float, *, exact: bool) -> float:
    """The value to exceed for p to be at most the level, so that p and bounds agree."""
    allowed = int(level * (len(largest) + (not exact)) + ROUNDING) - (not exact)
    at = len(largest) - 1 - allowed
    return float(np.partition(largest, at)[at]) if allowed >= 0 else np.inf


def all_flips(table: Values) -> Values:
    """Columns × flips: the columns' sums under every sign pattern."""
    sums = np.zeros((1, table.shape[1]))
    for query in table:
        sums = np.concatenate((sums + query, sums - query))
    return np.ascontiguousarray(sums.T)


def student(studentised: Values | float, n: int) -> Values:
    """Student's t from a sum divided by the root of its sum of squares. Both order flips the same way."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t: Values = studentised * np.sqrt(max(n - 1, 1) / np.maximum(n - np.square(studentised), 0.0))
    return t


@dataclass(frozen=True, slots=True)
class Versus:
    """Each row's mean minus the incumbent's. Lower and upper bounds each hold for all rows at once with 95%.

    `p_better` is at most alpha if `low` is above 0, `p_worse` if `high` is below. The incumbent's own are 1.
    """

    difference: Values
    low: Values
    high: Values
    p_better: Values
    p_worse: Values


def versus(
    table: Values,
    incumbent: int,
    *,
    bounded: bool = True,
    heaviest: float = 1.0,
    alpha: float = ALPHA,
    flips: int = FLIPS,
    seed: int = SEED,
) -> Versus:
    """For a table of queries × rows: every row against the incumbent, by single-step max-T over shared sign flips.

    Differences are centred before they are flipped, so the bar is that of the interval as well. A few queries can't
    rule out rare failures. So a `bounded` measure (0 to 1) gets imagined queries on which one side scores 0 and the
    other its mean: for a lower bound the row fails, for an upper bound the incumbent. With unequal weights, an
    imagined failure costs `heaviest` times more: the largest weight over the average.
    """
    others = np.arange(table.shape[1]) != incumbent
    leads = without_noise(table[:, others] - table[:, [incumbent]])
    means, imagined = table.mean(axis=0), count_imagined(table.shape[1]) if bounded else 0
    failures = heaviest * means
    low, p_better = _lower_bounds(
        leads, np.broadcast_to(failures[incumbent], leads.shape[1:]), imagined, alpha, flips, seed
    )
    high, p_worse = _lower_bounds(-leads, failures[others], imagined, alpha, flips, seed)
    found = np.tile(np.array([[0.0], [0.0], [0.0], [1.0], [1.0]]), len(means))
    found[:, others] = leads.mean(axis=0), low, -high, p_better, p_worse
    return Versus(*found)


def _lower_bounds(
    leads: Values, failures: Values, imagined: int, alpha: float, flips: int, seed: int
) -> tuple[Values, Values]:
    """Lower bounds of the columns' means with imagined failures of this cost, and the p of each mean being ≤ 0.

    Without any spread there is no bound.
    """
    queries = np.vstack((leads, np.tile(-failures, (imagined, 1))))
    n, means = len(queries), queries.mean(axis=0)
    centred = without_noise(queries - means)
    size = np.sqrt((centred**2).sum(axis=0))
    known = size > 0
    low, p = np.full(len(means), -np.inf), np.ones(len(means))
    if not known.any():
        return low, p
    scaled, error = centred[:, known] / size[known], size[known] / np.sqrt(n * (n - 1))
    exact = n <= EXACT_UP_TO
    sums = [all_flips(scaled)] if exact else flip_sums(scaled, affordable(flips, n), seed)
    largest = student(np.concatenate([block.max(axis=0) for block in sums]), n)
    low[known] = means[known] - (bar(largest, alpha, exact=exact) + ROUNDING) * error
    p[known] = share_reaching(largest, means[known] / error - ROUNDING, exact=exact)
    return low, p
