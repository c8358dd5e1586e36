"""Several looks: spending by hand, boundaries by scipy's integrals, the mixture by hand, and worlds of known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.statistics.best_set import best_set, versus
from bakeoff.statistics.looks import (
    Looks,
    best_set_at,
    cost_of_looks,
    mixture_bar,
    mixture_p,
    spend,
    spent,
    versus_at,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from simulate import looks as simulated
from simulate import worlds

FIFTHS = [0.2, 0.4, 0.6, 0.8, 1.0]


def test_spending_by_hand() -> None:
    """0.05 · ln(1 + 1.71828 t)."""
    assert [spent(share) for share in (0.0, 0.2, 0.5, 1.0)] == pytest.approx([0, 0.014769, 0.031006, 0.05], abs=1e-6)
    assert spent(1.3) == pytest.approx(0.05)


def _normal_paths(looks: int, paths: int) -> list[Values]:
    steps = np.random.default_rng(5).normal(size=(looks, paths))
    return list(np.cumsum(steps, axis=0) / np.sqrt(np.arange(1, looks + 1))[:, None])


def test_boundaries_of_normal_paths_are_the_published_ones() -> None:
    """Lan and DeMets' of Pocock's kind, five looks, 2.5% on each side: 2.438, 2.427, 2.410, 2.397, 2.386."""
    none = [np.full(1, -np.inf)] * 5
    bars = [each.bar for each in spend(_normal_paths(5, 1_000_000), none, FIFTHS, 0.025)]
    assert bars == pytest.approx([2.438, 2.427, 2.410, 2.397, 2.386], abs=0.015)


def test_boundaries_spend_alpha_by_scipys_multivariate_normal() -> None:
    bars = [each.bar for each in spend(_normal_paths(3, 400_000), [np.full(1, -np.inf)] * 3, [0.3, 0.6, 1.0], 0.05)]
    # steps of the paths are equal, and so are their correlations: √(1/2), √(1/3), √(2/3)
    correlation = np.array(
        [[1, 0.5**0.5, (1 / 3) ** 0.5], [0.5**0.5, 1, (2 / 3) ** 0.5], [(1 / 3) ** 0.5, (2 / 3) ** 0.5, 1]]
    )
    for look, share in enumerate([0.3, 0.6, 1.0], start=1):
        below = stats.multivariate_normal(np.zeros(look), correlation[:look, :look]).cdf(np.array(bars[:look]))
        assert 1 - below == pytest.approx(spent(share), abs=0.001)


def test_what_a_look_can_not_spend_is_kept() -> None:
    paths = _normal_paths(2, 100_000)
    untested = np.full(100_000, -np.inf)
    first, second = spend([untested, paths[1]], [np.full(1, -np.inf)] * 2, [0.5, 1.0], 0.05)
    assert math.isinf(first.bar)
    assert first.p.tolist() == [1.0]
    assert second.bar == pytest.approx(stats.norm.isf(0.05), abs=0.02)


def test_p_is_at_most_alpha_where_the_bar_is_passed() -> None:
    paths = _normal_paths(4, 4999)
    observed = [np.linspace(-1, 5, 400)] * 4
    for boundary, values in zip(spend(paths, observed, [0.25, 0.5, 0.75, 1.0], 0.05), observed, strict=True):
        np.testing.assert_array_equal(boundary.p <= 0.05, values > boundary.bar)


def test_the_mixture_by_hand() -> None:
    """S = 30, V = 100, ρ = 1/25: ρS²/(2(1 + ρV)) − ½ ln(1 + ρV) = 3.6 − 0.8047 = 2.7953, short of ln 20 = 2.9957."""
    r, squares, first = np.array([3.0]), np.array([100.0]), np.array([25.0])
    assert mixture_p(r, squares, first) == pytest.approx([math.exp(-2.7953)], rel=1e-4)
    assert mixture_p(r, squares, first, 7) == pytest.approx([7 * math.exp(-2.7953)], rel=1e-4)
    assert mixture_p(-r, squares, first).tolist() == [1.0]
    bar = math.sqrt(2 * 5 * 25 * (math.log(20) + 0.5 * math.log(5))) / 10
    assert mixture_bar(squares, first) == pytest.approx([bar])
    assert np.isinf(mixture_bar(squares, np.zeros(1))).all()


def test_one_planned_look_is_the_plain_test() -> None:
    table = worlds.as_measured(8).draw(np.random.default_rng(1), 100)
    once = Looks(np.ones(100, dtype=int), [1.0])
    planned, plain = best_set_at(table, once), best_set(table)
    np.testing.assert_array_equal(planned.within, plain.within)
    for name in ("p", "least", "most"):
        assert getattr(planned, name) == pytest.approx(getattr(plain, name), abs=0.01)
    one, other = versus_at(table, 0, once), versus(table, 0)
    for name in ("difference", "low", "high", "p_better", "p_worse"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=0.01)


def test_a_first_look_without_a_plan_is_the_plain_test() -> None:
    table, first = worlds.as_measured(4).draw(np.random.default_rng(2), 60), Looks(np.ones(60, dtype=int))
    assert best_set_at(table, first).p.tolist() == best_set(table).p.tolist()
    assert versus_at(table, 1, first).low.tolist() == versus(table, 1).low.tolist()


def test_no_planned_look_decides_while_fewer_than_ten_queries_differ() -> None:
    """Nine lost queries of a hundred: p of one look is far below 5%."""
    better = np.ones(100)
    worse = np.where(np.arange(100) < 9, 0.0, better)
    table, plan = np.stack((better, worse), axis=1), Looks(np.repeat([1, 2], 50), [0.5, 1.0])
    assert best_set_at(table, plan, bounded=False).within.all()
    assert not best_set(table, bounded=False).within[1]
    ten = np.stack((better, np.where(np.arange(100) < 14, 0.0, better)), axis=1)
    assert best_set_at(ten, plan, bounded=False).within.tolist() == [True, False]


def test_what_was_shown_stays_unless_the_data_turn_round() -> None:
    rng = np.random.default_rng(3)
    start = rng.uniform(0.3, 0.5, (60, 1))
    clear, even, turned = (np.hstack((start + gap + 0.1 * rng.random((60, 1)), start)) for gap in (0.3, -0.05, -0.45))
    plan = Looks(np.repeat([1, 2], 60), [0.5, 1.0])
    for looks in (plan, Looks(plan.joined)):
        assert best_set_at(np.vstack((clear, even)), looks).within.tolist() == [True, False]
        assert best_set_at(np.vstack((clear, turned)), looks).within[1]
        assert versus_at(np.vstack((clear, even)), 1, looks).low[0] > 0
        assert versus_at(np.vstack((clear, turned)), 1, looks).low[0] < 0


@settings(max_examples=40, deadline=None)
@given(st.integers(4, 30), st.integers(1, 5), st.integers(0, 10_000), st.booleans(), st.booleans())
def test_the_leader_is_in_it_and_bounds_agree(n: int, k: int, seed: int, bounded: bool, planned: bool) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 4, (3 * n, k)) / 3
    looks = Looks(np.repeat([1, 2, 3], n), [0.3, 0.6, 0.9] if planned else ())
    found, means = best_set_at(table, looks, bounded=bounded, flips=499), table.mean(axis=0)
    assert found.within[means >= means.max() - 1e-12].all()
    assert ((found.least > 0) == ~found.within).all()
    assert (found.least <= found.most).all()
    against = versus_at(table, 0, looks, bounded=bounded, flips=499)
    np.testing.assert_array_equal(against.low > 0, against.p_better <= 0.05)
    np.testing.assert_array_equal(against.high < 0, against.p_worse <= 0.05)


def test_what_looks_cost_is_what_is_known_of_pococks_plans() -> None:
    """Without imagined failures, about 1.17 times a fixed plan for 3 and 1.23 for 5 looks; 0.8 of it on average."""
    for looks, most in ((3, 1.17), (5, 1.23)):
        cost = cost_of_looks(looks, gap=0.1, variance=1.0, failure=0.0)
        assert cost is not None
        # ((1.695 + 0.842) / 0.1)² at 4.5%, one-sided
        assert cost.fixed == pytest.approx(644, abs=12)
        assert cost.most / cost.fixed == pytest.approx(most, abs=0.03)
        assert 0.75 < cost.with_gap / cost.fixed < 0.9
        assert 1.1 < cost.without_gap / cost.fixed < cost.most / cost.fixed


def test_imagined_failures_make_early_looks_rarely_decide() -> None:
    plain = cost_of_looks(5, gap=0.1, variance=0.1, failure=0.0)
    guarded = cost_of_looks(5, gap=0.1, variance=0.1, failure=0.6)
    assert plain is not None
    assert guarded is not None
    assert guarded.fixed > plain.fixed
    assert guarded.with_gap / guarded.fixed > plain.with_gap / plain.fixed


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 8])
@pytest.mark.parametrize("at", range(len(simulated.null_worlds(2))))
def test_errors_over_looks_in_every_world(k: int, at: int) -> None:
    for line in simulated.errors(simulated.null_worlds(k)[at], 100):
        assert line.missed == [], line
