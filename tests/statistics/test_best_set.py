"""The confidence set of the best against every flip, counted one by one, and against properties that hold by design."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.statistics.best_set import best_set
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from simulate import sets, worlds


def _p_by_hand(table: Values, row: int, rivals: list[int], signs: Values, imagined: int) -> float:
    """Largest studentised lead over a row, imagined queries included, among those under the given signs."""
    others = [rival for rival in rivals if rival != row]
    mean = np.full((imagined, len(others)), -table[:, row].mean())
    leads = np.vstack((table[:, others] - table[:, [row]], mean))
    leads = leads[:, stats.ttest_1samp(leads, 0).statistic > -math.sqrt(math.log(len(leads)))]
    if not leads.size:
        return 1.0
    leads /= np.sqrt((leads**2).sum(axis=0))
    observed = leads.sum(axis=0).max()
    flipped = (signs @ leads).max(axis=1)
    return float(np.mean(flipped >= observed - 1e-9))


def _set_by_hand(table: Values, signs: Values, imagined: int = 2) -> Values:
    """p of each row: a tenth of alpha for all rivals, the rest for rivals that pass that."""
    rows = range(table.shape[1])
    first = [_p_by_hand(table, row, list(rows), signs, imagined) for row in rows]
    passed = [row for row in rows if first[row] > 0.005]
    second = [_p_by_hand(table, row, passed, signs, imagined) for row in rows]
    return np.minimum(1, np.minimum(np.array(first) / 0.1, np.array(second) / 0.9))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("n", "k"), [(5, 2), (8, 4), (10, 5)])
def test_p_of_few_queries_counts_every_flip(n: int, k: int, seed: int) -> None:
    table = np.random.default_rng(seed).random((n, k)).round(1) * np.linspace(0.2, 1, k)
    signs = np.array(list(product((1, -1), repeat=n + 2)))
    assert best_set(table).p == pytest.approx(_set_by_hand(table, signs))


@pytest.mark.parametrize("seed", range(3))
def test_p_of_more_queries_is_that_of_other_random_flips(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = worlds.spread_means(6, 0.07).draw(rng, 40)
    signs = rng.choice([1.0, -1.0], (60_000, 42))
    assert best_set(table).p == pytest.approx(_set_by_hand(table, signs), abs=0.03)


def test_a_clear_best_is_alone_and_bounds_say_by_how_much() -> None:
    rng = np.random.default_rng(1)
    worse = rng.uniform(0.1, 0.3, (200, 1))
    found = best_set(np.hstack((worse + 0.6, worse, worse + 0.1 * rng.random((200, 1)))))
    assert found.within.tolist() == [True, False, False]
    assert found.most[0] == 0
    assert 0.5 < found.least[1] < 0.6 < found.most[1] < 0.65
    assert 0.45 < found.least[2] < 0.55 < found.most[2] < 0.6


def test_rows_that_score_alike_count_once() -> None:
    table = worlds.as_measured(8).draw(np.random.default_rng(2), 60)
    once, twice = best_set(table), best_set(np.hstack((table, table[:, :3])))
    for name in ("within", "p", "least", "most"):
        np.testing.assert_array_equal(getattr(twice, name)[:8], getattr(once, name))
        np.testing.assert_array_equal(getattr(twice, name)[8:], getattr(once, name)[:3])


def test_one_row_or_equal_rows_are_the_best() -> None:
    column = np.array([[0.3], [0.7], [0.2]])
    for table in (column, np.hstack((column, column))):
        found = best_set(table)
        assert found.within.all()
        assert (found.p == 1).all()
        assert (found.least == 0).all()
        assert (found.most == 0).all()


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_fewer_than_five_queries_exclude_nobody(n: int) -> None:
    assert best_set(np.hstack((np.ones((n, 1)), np.full((n, 2), 0.01)))).within.all()


def test_twenty_queries_do_not_exclude_a_row_that_may_only_fail_less_often() -> None:
    """A rival ahead by 0.04 on all of 20 queries may fail on one in twenty; one ahead by 0.4 is better all the same."""
    scores = np.random.default_rng(3).uniform(0.4, 0.5, (20, 1))
    jitter = np.random.default_rng(4).uniform(-0.005, 0.005, (20, 1))
    assert best_set(np.hstack((scores, scores + 0.03 + jitter))).within.tolist() == [True, True]
    assert best_set(np.hstack((scores, scores + 0.03 + jitter)), bounded=False).within.tolist() == [False, True]
    assert best_set(np.hstack((scores, scores + 0.4 + jitter))).within.tolist() == [False, True]


@pytest.mark.parametrize(("poor", "imagined"), [(0, 3), (30, 2)])
def test_thirty_rows_near_the_leader_have_a_third_imagined_query(poor: int, imagined: int) -> None:
    """They scatter alike, or thirty are far behind; the first row is bad enough to have a p that tells."""
    rng = np.random.default_rng(6)
    table = 0.3 + 0.1 * rng.random((40, 50))
    table[:, 0] -= 0.035
    table[:, 50 - poor :] *= 0.2
    signs = rng.choice([1.0, -1.0], (60_000, 40 + imagined))
    assert best_set(table).p[:3] == pytest.approx(_set_by_hand(table, signs, imagined)[:3], abs=0.02)
    other = rng.choice([1.0, -1.0], (60_000, 45 - imagined))
    assert best_set(table).p[0] != pytest.approx(_set_by_hand(table, other, 5 - imagined)[0], abs=0.05)


@settings(max_examples=60)
@given(st.integers(1, 30), st.integers(1, 6), st.integers(0, 10_000), st.booleans())
def test_the_leader_is_in_it_and_bounds_agree_with_the_set(n: int, k: int, seed: int, bounded: bool) -> None:
    table = np.random.default_rng(seed).integers(0, 4, (n, k)) / 3
    found = best_set(table, bounded=bounded, flips=499)
    means = table.mean(axis=0)
    assert found.within[means >= means.max() - 1e-12].all()
    assert ((found.least > 0) == ~found.within).all()
    assert (found.least <= found.most).all()
    assert (found.p[found.within] > 0.05).all()
    assert best_set(table, bounded=bounded, flips=499).p.tolist() == found.p.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 8])
@pytest.mark.parametrize("at", range(len(worlds.confidence_worlds(3))))
def test_set_and_bounds_hold_in_every_world(k: int, at: int) -> None:
    for line in sets.held(worlds.confidence_worlds(k)[at], (20, 100), 150):
        assert line.missed == [], line


@pytest.mark.slow
def test_set_and_bounds_hold_by_traffic() -> None:
    for line in sets.held(worlds.by_traffic(worlds.hidden_failures(8, 0.1)), (20, 100), 150):
        assert line.missed == [], line


@pytest.mark.slow
def test_the_set_is_no_larger_than_holms_group_and_poor_rows_leave_it_alone() -> None:
    for line in (
        *sets.sizes(worlds.as_measured(8), (20, 100), 60),
        *sets.changes(worlds.as_measured(8), (50, 100), 60),
    ):
        assert line.missed == [], line
