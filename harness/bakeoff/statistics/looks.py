"""Repeated looks at growing data, with bounds that hold over all looks.

Labelling more queries and testing again finds a false difference more than 5% of the time.
Planned looks spend alpha by Lan and DeMets' function of Pocock's kind (Biometrika 70, 1983), along the paths that
random flips of whole queries take through the looks. Without a plan, the first look is an ordinary test, and later ones
use a bound that holds at every look (a normal mixture of self-normalised sums; de la Peña, Lai and Shao, 2009). If
every cluster has gained a query since the first look, only that bound decides.

Every look is recomputed from its queries, so there is no stored state. What an earlier look has shown stays valid,
unless the data have reversed since.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.statistics.best_set import (
    CELLS,
    FEWEST_FLIPS,
    FIRST,
    FLIPS,
    LARGE,
    ROUNDING,
    BestSet,
    FlippedRows,
    Mask,
    RowTest,
    Versus,
    best_set,
    count_imagined,
    count_near_leader,
    student,
    versus,
)
from bakeoff.statistics.columns import affordable, without_noise
from bakeoff.statistics.constants import ALPHA, NOISE, SEED
from bakeoff.statistics.design import fewest_queries
from bakeoff.statistics.detectable import chance_to_show
from bakeoff.statistics.small_samples import FEWEST_UNLIKE
from bakeoff.statistics.tests import first_equal, flip_sums

STEPS = 16  # bisection steps for the length of a plan
PATHS = 20_000


@dataclass(frozen=True, slots=True)
class Looks:
    """For each query, the first look that included it, from 1. `shares`: of planned queries at each look."""

    joined: NDArray[np.int_]
    shares: Sequence[float] = ()

    @property
    def number(self) -> int:
        """The number of this look."""
        return int(self.joined.max())

    def until(self) -> Iterator[Mask]:
        """The queries up to each look."""
        for look in range(1, self.number + 1):
            yield self.joined <= look


def spent(share: float, alpha: float = ALPHA) -> float:
    """The share of alpha that may be spent at this share of the planned queries."""
    return alpha * math.log(1 + (math.e - 1) * min(share, 1.0))


@dataclass(frozen=True, slots=True)
class Boundary:
    """The bar of one look, and the p of each observed value: at most alpha if it exceeds the bar."""

    bar: float
    p: Values


def spend(paths: Sequence[Values], observed: Sequence[Values], shares: Sequence[float], alpha: float) -> list[Boundary]:
    """Spends alpha along the flips' paths: at each look, as many new paths may cross as alpha allows.

    A look at which no path can cross leaves its share for later looks.
    """
    flips = len(paths[0])
    waiting, found = np.ones(flips, dtype=bool), []
    for path, values, share in zip(paths, observed, shares, strict=True):
        level, crossed = spent(share, alpha), flips - int(waiting.sum())
        allowed = int(level * (flips + 1) + ROUNDING) - 1 - crossed  # the observed path is one of them
        left = np.sort(path[waiting])
        reached = len(left) - np.searchsorted(left, values - ROUNDING)
        p = np.where(np.isneginf(values), 1.0, (crossed + reached + 1) / (flips + 1) * alpha / level)
        bar = float(left[len(left) - 1 - allowed]) if 0 <= allowed < len(left) else math.inf
        bar = bar if bar > -math.inf else math.inf  # nothing was tested
        below = alpha * (1 - ROUNDING)  # p and the bar agree, however figures are rounded
        found.append(Boundary(bar, np.where(reached <= allowed, np.minimum(p, below), np.clip(p, below, 1.0))))
        waiting = waiting & (path <= bar)
    return found


def mixture_bar(squares: Values, first: Values, alpha: float = ALPHA) -> Values:
    """What a sum, divided by the root of its sum of squares, must exceed at any look after the first.

    `first` are the sums of squares at the first look, which fix the mixture; if these are 0, there is no bar.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = squares / first
        bar = np.sqrt(2 * (1 + growth) * (math.log(1 / alpha) + np.log1p(growth) / 2) / growth)
    return np.where((first > 0) & np.isfinite(growth), bar, np.inf)


def mixture_p(studentised: Values, squares: Values, first: Values, alternatives: int = 1) -> Values:
    """The p of sums above 0 that holds at every look, corrected for the number of alternatives."""
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = squares / first
        log_p = np.log1p(growth) / 2 - growth * np.square(studentised) / (2 * (1 + growth))
    shown = (first > 0) & np.isfinite(growth) & (studentised > 0)
    return np.where(shown, np.minimum(1.0, alternatives * np.exp(np.where(shown, log_p, 0.0))), 1.0)


def best_set_at(
    table: Values,
    looks: Looks,
    *,
    bounded: bool = True,
    heaviest: float = 1.0,
    alpha: float = ALPHA,
    flips: int = FLIPS,
    seed: int = SEED,
) -> BestSet:
    """The set of the best at the last look; equal to `best_set` for a single unplanned look."""
    if not looks.shares and looks.number == 1:
        return best_set(table, bounded=bounded, heaviest=heaviest, alpha=alpha, flips=flips, seed=seed)
    _, firsts, place = np.unique(first_equal(table), return_index=True, return_inverse=True)
    rows = table[:, firsts]
    imagined = count_imagined(count_near_leader(rows)) if bounded else 0
    if looks.shares:
        found = _planned_set(_flipped_rows(rows, looks, imagined, heaviest, flips, seed), looks.shares, alpha)
    else:
        first = rows[looks.joined == 1]
        plain = None
        if len(first):
            plain = best_set(first, bounded=bounded, heaviest=heaviest, alpha=alpha, flips=flips, seed=seed)
        found = _unplanned_set(_unflipped_rows(rows, looks, imagined, heaviest), plain, alpha)
    most = np.minimum(found.most, 1.0 if bounded else np.inf)
    return BestSet(found.within[place], found.p[place], np.minimum(found.least, most)[place], most[place])


def _flipped_rows(
    rows: Values, looks: Looks, imagined: int, heaviest: float, flips: int, seed: int
) -> list[FlippedRows]:
    """The rows of each look with their sums under flips. A query keeps its signs from look to look."""
    return [
        FlippedRows(rows[there], imagined, heaviest, np.vstack((sums[:-2], sums[-1:])), exact=False)
        for there, sums in zip(looks.until(), _sums_at(rows, looks, imagined, flips, seed), strict=True)
    ]


def _sums_at(rows: Values, looks: Looks, imagined: int, flips: int, seed: int) -> Iterator[Values]:
    """For each look and flip: every row's sum, and the sums of the real and imagined queries' signs."""
    flips = min(affordable(flips, len(rows)), max(FEWEST_FLIPS, CELLS // rows.shape[1] ** 2))
    signs = _flips_of(np.ones((max(imagined, 1), 1)), flips, seed) * (imagined > 0)
    sums = np.zeros((rows.shape[1] + 1, flips))
    padded = np.hstack((rows, np.ones((len(rows), 1))))
    for look in range(1, looks.number + 1):
        sums = sums + _flips_of(padded[looks.joined == look], flips, seed + look)
        yield np.vstack((sums, signs))


def _flips_of(values: Values, flips: int, seed: int) -> Values:
    if not len(values):
        return np.zeros((values.shape[1], flips))
    return np.concatenate(list(flip_sums(values, flips, seed)), axis=1)


def _unflipped_rows(rows: Values, looks: Looks, imagined: int, heaviest: float) -> list[FlippedRows]:
    none = np.zeros((rows.shape[1] + 1, 0))
    return [FlippedRows(rows[there], imagined, heaviest, none, exact=False) for there in looks.until() if there.any()]


def _planned_set(looks: Sequence[FlippedRows], shares: Sequence[float], alpha: float) -> BestSet:
    """Like `best_set` over all looks: a small share of alpha tests all rows, the rest those that pass."""
    rows = looks[-1].table.shape[1]
    leads = _leading(looks[-1].table)
    everyone = [np.ones(rows, dtype=bool)] * len(looks)
    before = [_tested([look.test(row) for look in looks], everyone, shares, FIRST * alpha) for row in range(rows)]
    passed = [
        np.array([not _shown(each.p[: at + 1], FIRST * alpha, leads=leads[row]) for row, each in enumerate(before)])
        for at in range(len(looks))
    ]
    p, least, most = np.ones(rows), np.zeros(rows), np.zeros(rows)
    for row in range(rows):
        tests = [look.test(row) for look in looks]
        after = _tested(tests, passed, shares, (1 - FIRST) * alpha)
        since = len(looks) - 1 if leads[row] else 0  # an earlier look does not exclude a row that leads now
        p[row] = min(1.0, before[row].p[since:].min() / FIRST, after.p[since:].min() / (1 - FIRST))
        if p[row] > alpha:
            most = np.maximum(most, after.most)
        else:
            least[row] = max(before[row].least[since:].max(), after.least[since:].max())
    return BestSet(p > alpha, p, least, most)


def _shown(p: Values, level: float, *, leads: bool) -> bool:
    return bool((p[-1:] if leads else p).min() <= level)


def _leading(table: Values) -> Mask:
    means = table.mean(axis=0)
    leads: Mask = means >= means.max() - NOISE
    return leads


@dataclass(frozen=True, slots=True)
class _RowOverLooks:
    """A row at each look: the p of being best, its least gap to the best, and the others' largest gap to it."""

    p: Values
    least: Values
    most: Values


def _tested(tests: Sequence[RowTest], rivals: Sequence[Mask], shares: Sequence[float], level: float) -> _RowOverLooks:
    near = [test.near(there) & (test.differing >= FEWEST_UNLIKE) for test, there in zip(tests, rivals, strict=True)]
    observed = [test.observed[mask].max(initial=-np.inf, keepdims=True) for test, mask in zip(tests, near, strict=True)]
    paths = [test.flipped[mask].max(axis=0, initial=-np.inf) for test, mask in zip(tests, near, strict=True)]
    found = spend(paths, observed, shares, level)
    least = [
        _least(test, mask, np.full(len(mask), student(boundary.bar, test.n)))
        for test, mask, boundary in zip(tests, near, found, strict=True)
    ]
    last = tests[-1]
    bars = np.full(len(near[-1]), student(found[-1].bar, last.n))
    for row in np.flatnonzero(~near[-1]):  # they would weaken the test
        wider = [np.maximum(path, test.flipped[row]) for path, test in zip(paths, tests, strict=True)]
        bars[row] = student(spend(wider, observed, shares, level)[-1].bar, last.n)
    return _RowOverLooks(np.array([float(each.p[0]) for each in found]), np.array(least), _most(last, bars))


def _least(test: RowTest, near: Mask, bars: Values) -> float:
    """The least gap of a row to the best; -inf if no rival is near."""
    return float((test.lead - np.minimum(bars, LARGE) * test.error)[near].max(initial=-np.inf))


def _most(test: RowTest, bars: Values) -> Values:
    """How far every other row can be behind this one at most, if this is the best."""
    bars = np.where(np.arange(len(bars)) == test.row, 0.0, bars)
    most: Values = np.maximum(0.0, np.minimum(bars, LARGE) * test.error - test.lead)
    return np.where(np.isfinite(bars), most, np.inf)


def _unplanned_set(looks: Sequence[FlippedRows], plain: BestSet | None, alpha: float) -> BestSet:
    """The set without a plan. `plain` is the first look's set, if any of its units are unchanged."""
    rows = looks[-1].table.shape[1]
    leads, everyone = _leading(looks[-1].table), np.ones(rows, dtype=bool)
    p, least, most = np.ones(rows), np.zeros(rows), np.zeros(rows)
    if plain is not None:
        p, least = np.where(leads, 1.0, plain.p), np.where(leads, 0.0, plain.least)
    for row in range(rows):
        first = looks[0].test(row)
        for look in looks if plain is None else looks[1:]:
            test = look.test(row)
            near = test.near(everyone)
            rivals = max(1, int(near.sum()))
            if not leads[row]:
                shown = mixture_p(test.observed, test.squares, first.squares, rivals)[near]
                p[row] = min(p[row], shown.min(initial=1.0))
                bars = student(mixture_bar(test.squares, first.squares, alpha / rivals), test.n)
                least[row] = max(least[row], _least(test, near, bars))
            if look is looks[-1] and p[row] > alpha:
                bars = student(mixture_bar(test.squares, first.squares, alpha / max(1, rows - 1)), test.n)
                most = np.maximum(most, _most(test, bars))
    return BestSet(p > alpha, p, np.where(p > alpha, 0.0, least), most)


def versus_at(
    table: Values,
    incumbent: int,
    looks: Looks,
    *,
    bounded: bool = True,
    heaviest: float = 1.0,
    alpha: float = ALPHA,
    flips: int = FLIPS,
    seed: int = SEED,
) -> Versus:
    """Every row against the incumbent at the last look; equal to `versus` for a single unplanned look."""
    if not looks.shares and looks.number == 1:
        return versus(table, incumbent, bounded=bounded, heaviest=heaviest, alpha=alpha, flips=flips, seed=seed)
    others = np.arange(table.shape[1]) != incumbent
    imagined = count_imagined(table.shape[1]) if bounded else 0
    difference = without_noise(table[:, others] - table[:, [incumbent]]).mean(axis=0)
    sides = []
    plain, first = None, table[looks.joined == 1]
    if not looks.shares and len(first):
        plain = versus(first, incumbent, bounded=bounded, heaviest=heaviest, alpha=alpha, flips=flips, seed=seed)
    sums = list(_sums_at(table, looks, imagined, flips, seed)) if looks.shares else []
    for sign in (1.0, -1.0):
        sampled = [
            _Leads.of(table[there], incumbent, sign, imagined, heaviest)
            for there in looks.until()
            if looks.shares or there.any()
        ]
        if looks.shares:
            low, p = _planned_bounds(sampled, sums, incumbent, sign, looks.shares, alpha)
        else:
            low, p = _unplanned_bounds(sampled, alpha)
            if plain is not None:
                shown = (plain.low, plain.p_better) if sign > 0 else (-plain.high, plain.p_worse)
                low[0], p[0] = shown[0][others], shown[1][others]
        holds = np.maximum.accumulate(low, axis=0)[-1], np.minimum.accumulate(p, axis=0)[-1]
        turned = sign * difference <= 0  # later data overrule an earlier look
        sides.append((np.where(turned, low[-1], holds[0]), np.where(turned, p[-1], holds[1])))
    (low, p_better), (high, p_worse) = sides
    found = np.tile(np.array([[0.0], [0.0], [0.0], [1.0], [1.0]]), table.shape[1])
    found[:, others] = difference, low, -high, p_better, p_worse
    return Versus(*found)


@dataclass(frozen=True, slots=True)
class _Leads:
    """Rows' leads over the incumbent at one look, or the reverse, including imagined failures."""

    n: int
    means: Values
    size: Values  # of the centred leads: the root of the sum of squares
    squares: Values
    failures: Values
    differing: NDArray[np.int_]

    @classmethod
    def of(cls, table: Values, incumbent: int, sign: float, imagined: int, heaviest: float) -> _Leads:
        others = np.arange(table.shape[1]) != incumbent
        leads = without_noise(sign * (table[:, others] - table[:, [incumbent]]))
        means = heaviest * table.mean(axis=0)
        failures = np.full(leads.shape[1], means[incumbent]) if sign > 0 else means[others]
        queries = np.vstack((leads, np.tile(-failures, (imagined, 1))))
        centred = without_noise(queries - queries.mean(axis=0))
        return cls(
            len(queries),
            queries.mean(axis=0),
            np.sqrt((centred**2).sum(axis=0)),
            (queries**2).sum(axis=0),
            failures,
            np.count_nonzero(leads, axis=0),
        )

    @property
    def error(self) -> Values:
        """The standard error of the mean."""
        return self.size / math.sqrt(self.n * max(self.n - 1, 1))


def _planned_bounds(
    looks: Sequence[_Leads],
    sums: Sequence[Values],
    incumbent: int,
    sign: float,
    shares: Sequence[float],
    alpha: float,
) -> tuple[Values, Values]:
    """Lower bounds and p, looks × rows, by flips of the centred leads."""
    paths, observed, tested = [], [], []
    for look, flipped in zip(looks, sums, strict=True):
        known = (look.size > 0) & (look.differing >= FEWEST_UNLIKE)
        rows, signs, imagined = flipped[:-2], flipped[-2], flipped[-1]
        leads = sign * (np.delete(rows, incumbent, axis=0) - rows[incumbent])[known]
        centred = leads - look.failures[known, None] * imagined - look.means[known, None] * (signs + imagined)
        largest = (centred / look.size[known, None]).max(axis=0, initial=-np.inf)
        paths.append(student(largest, look.n) if known.any() else largest)
        with np.errstate(divide="ignore", invalid="ignore"):
            observed.append(np.where(known, look.means / look.error, -np.inf))
        tested.append(known)
    found = spend(paths, observed, shares, alpha)
    low = [
        np.where(known, look.means - min(boundary.bar, LARGE) * look.error, -np.inf)
        for look, boundary, known in zip(looks, found, tested, strict=True)
    ]
    return np.array(low), np.array([boundary.p for boundary in found])


def _unplanned_bounds(looks: Sequence[_Leads], alpha: float) -> tuple[Values, Values]:
    """The same, by the bound that holds at every look."""
    lows, ps = [], []
    for look in looks:
        squares, first, rows = look.squares, looks[0].squares, max(1, len(look.means))
        studentised = look.n * look.means / np.sqrt(np.where(squares > 0, squares, np.inf))
        bars = student(mixture_bar(squares, first, alpha / rows), look.n)
        lows.append(np.where(np.isfinite(bars), look.means - np.minimum(bars, LARGE) * look.error, -np.inf))
        ps.append(mixture_p(studentised, squares, first, rows))
    return np.array(lows), np.array(ps)


@dataclass(frozen=True, slots=True)
class LookCost:
    """Queries for one look, for all planned looks, and on average until a decision, with and without the gap."""

    fixed: int
    most: int
    with_gap: float
    without_gap: float


def cost_of_looks(
    looks: int,
    *,
    gap: float,
    variance: float,
    failure: float,
    power: float = 0.8,
    comparisons: int = 1,
    seed: int = SEED,
) -> LookCost | None:
    """The cost of planned looks for the set of the best, simulated by normal paths with equal steps.

    `variance` is of the differences, `failure` the cost of an imagined query. None if no number would do.
    """
    fixed = fewest_queries(lambda n: chance_to_show(gap, n, variance, failure, comparisons) >= power)
    if fixed is None:
        return None
    shares = np.arange(1, looks + 1) / looks
    flips, noise = np.random.default_rng(seed).normal(size=(2, looks, PATHS))
    imagined, alpha = count_imagined(comparisons + 1), (1 - FIRST) * ALPHA / comparisons

    def stops(most: float, true_gap: float) -> tuple[float, float]:
        """How often such a plan shows the gap, and how many queries it takes on average."""
        n = most * shares[:, None]
        squares = n * (variance + true_gap**2) + imagined * failure**2
        steps = np.sqrt(np.diff(squares, axis=0, prepend=0.0))
        paths = np.cumsum(steps * flips, axis=0) / np.sqrt(squares)
        bars = [each.bar for each in spend(list(paths), [np.full(1, -np.inf)] * looks, shares.tolist(), alpha)]
        sums = np.cumsum(noise, axis=0) * math.sqrt(most / looks * variance) + n * true_gap - imagined * failure
        crosses = sums / np.sqrt(squares) > np.array(bars)[:, None]
        shown = crosses.any(axis=0)
        at = np.where(shown, crosses.argmax(axis=0) + 1, looks)
        return float(shown.mean()), float(at.mean()) * most / looks

    low, high = 0.9 * fixed, 2.0 * fixed
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if stops(middle, gap)[0] >= power else (middle, high)
    return LookCost(fixed, math.ceil(high), stops(high, gap)[1], stops(high, 0.0)[1])
