"""Plain means and means by traffic: each asks the tests that it says it asks, and drawn queries carry their weights."""

from __future__ import annotations

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.core.task import Drawn
from bakeoff.statistics.averaging import PerQuery, PerQueryAsked, averaging_of
from bakeoff.statistics.compare import compare, outlook
from bakeoff.statistics.stratified import Strata, estimate
from scipy import stats

# Two strata: one query of two with half of the traffic between them, and three of thirty with the other half.
STRATA = Strata(np.array([0.3, 0.2, 0.25, 0.15, 0.1]), ["head", "head", "tail", "tail", "tail"], [2, 2, 30, 30, 30])
A = np.array([0.9, 0.8, 0.7, 0.1, 0.6])
B = np.array([0.5, 0.8, 0.2, 0.3, 0.1])
HEAD = np.array([True, True, False, False, False])


def test_a_mean_by_traffic_and_a_plain_one() -> None:
    plain, asked = PerQuery(), PerQueryAsked(STRATA)
    assert plain.mean(A) == pytest.approx(0.62)
    assert plain.mean(A, HEAD) == pytest.approx(0.85)
    assert asked.mean(A) == pytest.approx(0.3 * 0.9 + 0.2 * 0.8 + 0.25 * 0.7 + 0.15 * 0.1 + 0.1 * 0.6)
    assert asked.mean(A, HEAD) == pytest.approx((0.3 * 0.9 + 0.2 * 0.8) / 0.5)
    assert plain.weights is None
    assert asked.weights is STRATA.weights


def test_an_interval_over_some_of_the_queries() -> None:
    """A plain one is that of these queries alone; traffic was drawn over all of them, so it says nothing of some."""
    tail = PerQuery().intervals(A[~HEAD][:, None])
    assert np.array_equal(PerQuery().intervals(A[:, None], where=~HEAD), tail)
    assert np.isnan(PerQueryAsked(STRATA).intervals(A[:, None], where=~HEAD)).all()


def test_a_pair_by_traffic_is_the_stratified_estimate_of_its_differences() -> None:
    (pair,) = PerQueryAsked(STRATA).pairs({"a": A, "b": B})
    d = A - B
    expected = estimate(d, STRATA)
    assert (pair.a, pair.b) == ("a", "b")
    assert (pair.difference, pair.low, pair.high) == pytest.approx((expected.mean, expected.low, expected.high))
    assert (pair.p, pair.p_holm, pair.t_p) == pytest.approx((expected.p,) * 3)
    assert (pair.wins, pair.ties, pair.losses) == (3, 1, 1)
    assert pair.wilcoxon_p == pytest.approx(float(stats.wilcoxon(d[d != 0], method="exact").pvalue))
    mean = float(STRATA.weights @ d)
    assert pair.effect == pytest.approx(mean / np.sqrt(STRATA.weights @ (d - mean) ** 2))


def test_holm_is_over_all_pairs_and_ties_follow_it() -> None:
    rng = np.random.default_rng(1)
    strata = Strata(np.full(40, 1 / 40), ["all"] * 40, [10**9] * 40)
    base = rng.random(40)
    scores = {"good": base, "bad": base - 0.3 + rng.normal(0, 0.01, 40), "alike": base + rng.normal(-0.01, 0.1, 40)}
    asked = PerQueryAsked(strata)
    pairs = asked.pairs(scores)
    alone = [float(stats.ttest_rel(scores[pair.a], scores[pair.b]).pvalue) for pair in pairs]
    assert [pair.p for pair in pairs] == pytest.approx(alone, abs=1e-6)
    order = np.argsort(alone)
    adjusted = np.minimum(1, np.maximum.accumulate(np.array(alone)[order] * [3, 2, 1]))
    assert [pairs[at].p_holm for at in order] == pytest.approx(adjusted.tolist(), abs=1e-6)
    assert asked.tied(scores) == {"good": True, "bad": False, "alike": True}
    assert PerQuery().tied(scores) == {"good": True, "bad": False, "alike": True}
    assert asked.pairs(scores, among=scores) == pairs


def test_one_contender_ties_with_itself_and_none_with_nobody() -> None:
    for averaging in (PerQuery(), PerQueryAsked(STRATA)):
        assert averaging.pairs({"a": A}) == []
        assert averaging.tied({"a": A}) == {"a": True}
        assert averaging.tied({}) == {}


def _many() -> tuple[dict[str, Values], Strata]:
    rng = np.random.default_rng(2)
    return {f"c{at}": rng.random(12) for at in range(46)}, Strata(np.full(12, 1 / 12), ["all"] * 12, [120] * 12)


def test_of_very_many_pairs_only_the_best_and_neighbours_are_worked_out() -> None:
    """46 contenders have 1,035 pairs; 45 are with the best, 45 of neighbours, one is both."""
    scores, strata = _many()
    asked = PerQueryAsked(strata)
    assert len(asked.pairs(scores)) == 89
    assert len(asked.pairs(scores, among=scores)) == 1035
    assert len(PerQuery().pairs(scores)) == 89


def test_the_pairs_of_some_are_corrected_for_all() -> None:
    """a wins 6 queries of b and 5 of c: of three pairs p = 2 / 2^6 is the smallest, so Holm takes it 3 times."""
    a, b, c = np.ones(12), np.ones(12), np.ones(12)
    b[:6], c[:5] = 0, 0
    (pair,) = PerQuery().pairs({"a": a, "b": b, "c": c}, among=["a", "b"])
    assert (pair.a, pair.b) == ("a", "b")
    assert (pair.p, pair.p_holm) == pytest.approx((2 / 2**6, 3 * 2 / 2**6))
    everyone = {"a": A, "b": B, "c": A * B}
    asked = PerQueryAsked(STRATA)
    assert asked.pairs(everyone, among=["b", "c"]) == asked.pairs(everyone)[2:]
    assert asked.pairs(everyone, among=["b"]) == PerQuery().pairs(everyone, among=["b"]) == []


def test_what_is_not_known_is_none() -> None:
    """One query stands for nine: there is no interval; where nothing varies there is no effect in deviations."""
    (pair,) = PerQueryAsked(Strata(np.array([0.5, 0.5]), ["a", "b"], [1, 9])).pairs({"x": A[:2], "y": A[:2] - 0.5})
    assert (pair.low, pair.high, pair.effect) == (None, None, None)
    assert (pair.difference, pair.p, pair.p_holm) == pytest.approx((0.5, 1.0, 1.0))


def test_an_outlook_by_traffic_is_that_of_linearised_values() -> None:
    scores = {"a": A, "b": B}
    asked = PerQueryAsked(STRATA)
    linear = {label: asked.linear(values) for label, values in scores.items()}
    assert asked.outlook(scores, "a") == outlook(linear, "a", 42)
    for label, values in scores.items():
        assert linear[label].mean() == pytest.approx(asked.mean(values))
    error = (estimate(A, STRATA).high - estimate(A, STRATA).low) / 2 / stats.t.ppf(0.975, 2)
    assert linear["a"].std(ddof=1) / np.sqrt(5) == pytest.approx(error)
    unknown = PerQueryAsked(Strata(STRATA.weights, ["one", "head", "tail", "tail", "tail"], [9, 1, 30, 30, 30]))
    assert unknown.outlook(scores, "a") is None
    assert unknown.linear(A) == pytest.approx(A - A.mean() + unknown.mean(A))
    whole = PerQueryAsked(Strata(STRATA.weights, ["all"] * 5, [5] * 5))
    assert whole.outlook(scores, "a") is None


def test_tests_of_one_column_against_zero_and_of_equivalence() -> None:
    asked, plain = PerQueryAsked(STRATA), PerQuery()
    table = np.stack((A - B, np.zeros(5)), axis=1)
    assert asked.p_zero(table).tolist() == pytest.approx([estimate(A - B, STRATA).p, 1.0])
    assert plain.p_zero(table).tolist() == pytest.approx([compare({"a": A, "b": B})[0].p, 1.0])
    found = estimate(A - B, STRATA)
    error = (found.high - found.low) / 2 / stats.t.ppf(0.975, 2)
    one_sided = stats.t.sf((0.9 - abs(found.mean)) / error, 2)
    assert asked.p_equivalent([A - B, B - A], 0.9, bounded=False).tolist() == pytest.approx([one_sided] * 2)  # once
    two = asked.p_equivalent([A - B, (A - B) / 2], 0.9, bounded=False)
    assert two[0] == pytest.approx(max(one_sided, float(two[1])))
    nothing = plain.p_equivalent([np.zeros(500)], 0.01)  # a measure is from 0 to 1 unless it is said not to be
    assert nothing.tolist() == pytest.approx([0.99**500], abs=0.015)
    assert plain.p_equivalent([np.zeros(500)], 0.01, bounded=False).tolist() == [1.0]
    wins = asked.winning({"a": A, "b": B})
    assert wins["a"].probability + wins["b"].probability == pytest.approx(1)
    unbounded = asked.intervals(A[:, None], bounded=False)
    assert unbounded[0][0] == pytest.approx(estimate(A, STRATA).low)  # Student's with two degrees of freedom is wider


def test_traffic_counts_only_where_every_query_says_what_it_stands_for() -> None:
    drawn = [Drawn(weight=0.75, stratum="head", of=1), Drawn(weight=0.25, stratum="tail", of=7)]
    asked = averaging_of(drawn, 5)
    assert isinstance(asked, PerQueryAsked)
    assert (asked.seed, asked.strata.names, asked.strata.sizes) == (5, ["head", "tail"], [1, 7])
    assert asked.mean(np.array([1.0, 0.0])) == 0.75
    assert averaging_of([*drawn, None], 5) == PerQuery(5)
    assert averaging_of([], 5) == PerQuery(5)


def test_shares_of_some_queries_are_shares_of_their_sum() -> None:
    drawn = [Drawn(weight=0.3, stratum="head", of=1), Drawn(weight=0.1, stratum="tail", of=9)]
    assert averaging_of(drawn).mean(np.array([1.0, 0.0])) == pytest.approx(0.75)


def test_equivalence_by_traffic_is_corrected_for_distinct_differences() -> None:
    """Holm over two: the smaller p twice, the larger as it is, or the smaller's where that is more."""
    strata = Strata(np.full(30, 1 / 30), ["all"] * 30, [900] * 30)
    rng = np.random.default_rng(3)
    one, other = rng.normal(0, 0.05, 30), rng.normal(0.01, 0.2, 30)
    alone = [float(PerQueryAsked(strata).p_equivalent([d], 0.1)[0]) for d in (one, other)]
    small, large = sorted(alone)
    both = PerQueryAsked(strata).p_equivalent([one, other], 0.1)
    assert sorted(both.tolist()) == pytest.approx([2 * small, max(2 * small, large)])
    again = PerQueryAsked(strata).p_equivalent([one, other, one.copy()], 0.1)
    assert again.tolist()[:2] == pytest.approx(both.tolist())  # the same difference is one hypothesis
