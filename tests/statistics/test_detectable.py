"""What queries can show: gaps and plans against the test itself, on draws that a few other lines make."""

from __future__ import annotations

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.statistics.best_set import best_set
from bakeoff.statistics.detectable import find_noticeable_gap, queries_for_gap, queries_to_separate, round_gap
from scipy.optimize import brentq
from scipy.special import softmax
from simulate import planning, worlds


def _pair(seed: int, n: int) -> Values:
    return worlds.scifact()[np.random.default_rng(seed).integers(300, size=n)][:, [0, 4]]


@pytest.mark.parametrize("n", [40, 150])
def test_the_gap_is_found_in_four_of_five_draws_of_the_same_queries(n: int) -> None:
    pair = _pair(1, n)
    gap = find_noticeable_gap(*pair.T)
    assert gap is not None
    d = pair[:, 0] - pair[:, 1]
    weights = softmax(brentq(lambda steepness: softmax(steepness * d) @ d - gap, -50, 50) * d)
    rng = np.random.default_rng(2)
    drawn = [pair[rng.choice(n, n, p=weights)] for _ in range(400)]
    assert np.mean([not best_set(table, flips=999).within[1] for table in drawn]) == pytest.approx(0.8, abs=0.06)


def test_nothing_is_said_where_few_queries_differ_or_no_tilt_is_enough() -> None:
    same = np.linspace(0.2, 0.9, 60)
    nine, ten = same.copy(), same.copy()
    nine[:9] += 0.5
    ten[:10] += 0.5
    assert find_noticeable_gap(nine, same) is None
    assert find_noticeable_gap(ten, same) is not None
    assert find_noticeable_gap(same[:20] + 0.01 * np.linspace(-1, 1, 20), same[:20]) is None  # all gaps are tiny
    assert find_noticeable_gap(same - 0.1, same) is None  # it never leads
    assert find_noticeable_gap(ten, same) == find_noticeable_gap(ten, same)


def test_more_queries_notice_more() -> None:
    """By the root of their number where no failure is imagined, which matters less the more there are."""
    pairs = [np.tile(_pair(3, 40), (times, 1)) for times in (4, 32)]
    few, many = (find_noticeable_gap(*pair.T, heaviest=0.0) or 0.0 for pair in pairs)
    assert few / many == pytest.approx(8**0.5, rel=0.15)
    guarded = [find_noticeable_gap(*pair.T) or 0.0 for pair in pairs]
    assert guarded[0] / few > guarded[1] / many > 1


@pytest.mark.parametrize(("gap", "queries", "rounded"), [(0.2417, 20, 0.2), (0.0962, 49, 0.1), (0.0962, 50, 0.096)])
def test_a_gap_has_one_digit_below_fifty_queries(gap: float, queries: int, rounded: float) -> None:
    assert round_gap(gap, queries) == pytest.approx(rounded)


def test_planned_queries_find_the_gap_in_four_of_five_draws() -> None:
    rng = np.random.default_rng(4)
    rival = rng.uniform(0.3, 0.5, 4000)
    leader = rival + rng.normal(0, 0.1, 4000)
    plan = queries_for_gap(leader, rival, gap=0.03)
    assert plan is not None
    assert plan[0] == plan[1]
    found = 0
    for _ in range(300):
        scores = rng.uniform(0.3, 0.5, plan[0])
        found += not best_set(np.stack((scores + rng.normal(0.03, 0.1, plan[0]), scores), axis=1), flips=999).within[1]
    assert found / 300 == pytest.approx(0.8, abs=0.07)
    fewer = queries_for_gap(leader, rival, gap=0.03, heaviest=0.0)
    assert fewer is not None
    assert fewer[0] < plan[0]


def test_a_plan_from_few_queries_is_a_range_and_from_none_that_differ_there_is_none() -> None:
    low, high = queries_for_gap(*_pair(5, 30).T, gap=0.05) or (0, 0)
    assert high / low == pytest.approx(2.5, rel=0.02)
    assert queries_for_gap(np.ones(30), np.ones(30), gap=0.05) is None
    assert queries_for_gap(*_pair(5, 30).T, gap=0.0) is None
    assert queries_for_gap(np.array([1.0]), np.array([0.0]), gap=0.05) is None


def test_planned_queries_exclude_rows_that_have_many_rivals() -> None:
    """Seven rows are behind by the gap, and each is tested against all others at once."""
    rng = np.random.default_rng(8)
    pilot = rng.uniform(0.3, 0.5, (4000, 1)) + rng.normal(0, 0.1, (4000, 8))
    plan = queries_to_separate(pilot, np.ones(8, dtype=bool), gap=0.03)
    assert plan is not None
    behind = np.append(0.0, np.full(7, 0.03))
    drawn = [rng.uniform(0.3, 0.5, (plan[0], 1)) + rng.normal(0, 0.1, (plan[0], 8)) - behind for _ in range(60)]
    excluded = np.mean([1 - best_set(table, flips=999).within[1:].mean() for table in drawn])
    assert 0.75 <= excluded <= 0.95  # of rows that vary alike and apart: a little cautious
    two = queries_for_gap(pilot[:, 0], pilot[:, 1], gap=0.03)
    assert two is not None
    assert two[0] < 0.7 * plan[0]


@pytest.mark.slow
def test_gaps_and_plans_hold_for_real_pairs() -> None:
    found = (
        *planning.unnoticed((20, 50), 56),
        *planning.planned(0.1, (20, 50), 56),
        planning.separated(8, (20, 50), 56),
    )
    for line in found:
        assert line.missed == [], line
