"""Rows against an incumbent: every flip counted one by one, bounds that agree with tests, and worlds of known truth."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.statistics.best_set import versus
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from simulate import incumbents, worlds


def _by_hand(table: Values, incumbent: int) -> tuple[list[float], list[float]]:
    """Lower bounds and p of rows that fail on two imagined queries, by scipy's t over all flips of centred leads."""
    n, k = table.shape
    others = [row for row in range(k) if row != incumbent]
    failed = [-table[:, incumbent].mean()] * 2
    leads = np.array([np.append(table[:, row] - table[:, incumbent], failed) for row in others])
    signs = np.array(list(product((1, -1), repeat=n + 2)))
    centred = leads - leads.mean(axis=1, keepdims=True)
    flipped = np.array([stats.ttest_1samp(signs * lead, 0, axis=1).statistic for lead in centred]).max(axis=0)
    bar = np.sort(flipped)[::-1][int(0.05 * len(signs) + 1e-9)]
    t = stats.ttest_1samp(leads, 0, axis=1).statistic
    low = leads.mean(axis=1) - bar * stats.sem(leads, axis=1)
    return low.tolist(), [float(np.mean(flipped >= each - 1e-9)) for each in t]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n", "k"), [(6, 2), (8, 4), (10, 3)])
def test_bounds_of_few_queries_count_every_flip(n: int, k: int, seed: int) -> None:
    table = np.random.default_rng(seed).random((n, k))
    low, p = _by_hand(table, 1)
    found = versus(table, 1)
    others = [0, *range(2, k)]
    assert found.low[others] == pytest.approx(low)
    assert found.p_better[others] == pytest.approx(p)
    assert found.difference[others] == pytest.approx(table[:, others].mean(axis=0) - table[:, 1].mean())
    assert (found.low[1], found.high[1], found.difference[1]) == (0, 0, 0)
    assert (found.p_better[1], found.p_worse[1]) == (1, 1)


def test_of_two_rows_each_is_the_others_mirror() -> None:
    table = worlds.as_measured(2).draw(np.random.default_rng(1), 80)
    one, other = versus(table, 0), versus(table, 1)
    assert one.low[1] == pytest.approx(-other.high[0])
    assert one.p_better[1] == pytest.approx(other.p_worse[0])


def test_one_pair_has_about_students_bound() -> None:
    """Of normal differences, and of values without bounds, to which nothing is added."""
    d = np.random.default_rng(2).normal(0.2, 1, 60)
    expected = stats.ttest_1samp(d, 0, alternative="greater").confidence_interval(0.95).low
    assert versus(np.stack((np.zeros(60), d), axis=1), 0, bounded=False).low[1] == pytest.approx(expected, abs=0.01)


@settings(max_examples=60)
@given(st.integers(2, 40), st.integers(1, 6), st.integers(0, 10_000), st.booleans())
def test_bounds_agree_with_tests(n: int, k: int, seed: int, bounded: bool) -> None:
    table = np.random.default_rng(seed).integers(0, 4, (n, k)) / 3
    found = versus(table, 0, bounded=bounded, flips=499)
    np.testing.assert_array_equal(found.low > 0, found.p_better <= 0.05)
    np.testing.assert_array_equal(found.high < 0, found.p_worse <= 0.05)
    assert (found.low <= found.difference).all()
    assert (found.high >= found.difference).all()


def test_what_differs_nowhere_or_alike_has_no_bound_unless_scores_have() -> None:
    same = np.random.default_rng(3).random((30, 1))
    table = np.hstack((same, same, same + 0.5))
    unbounded = versus(table, 0, bounded=False)
    assert np.isneginf(unbounded.low[1:]).all()
    assert np.isposinf(unbounded.high[1:]).all()
    assert (unbounded.p_better == 1).all()
    assert np.isfinite(versus(table, 0).low).all()


@pytest.mark.slow
@pytest.mark.parametrize("incumbent", [0, 7])
@pytest.mark.parametrize("at", range(len(worlds.confidence_worlds(3))))
def test_false_winners_and_bounds_in_every_world(at: int, incumbent: int) -> None:
    for line in incumbents.held(worlds.confidence_worlds(8)[at], incumbent, (20, 100), 150):
        assert line.missed == [], line


@pytest.mark.slow
def test_planned_queries_show_a_gain_over_the_incumbent() -> None:
    assert incumbents.planned(8, (20, 50), 100).missed == []
