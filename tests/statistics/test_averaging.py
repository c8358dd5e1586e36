"""Plain means and means by traffic: each asks the tests that it says it asks, and drawn queries carry their weights."""

from __future__ import annotations

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.core.task import Drawn
from bakeoff.statistics.averaging import PerQuery, PerQueryAsked, averaging_of
from bakeoff.statistics.compare import compare
from bakeoff.statistics.guarded import equivalence_p
from bakeoff.statistics.stratified import Strata, estimate
from bakeoff.statistics.tests import sign_flip_test
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


def test_a_pair_by_traffic_is_that_of_linearised_values() -> None:
    asked = PerQueryAsked(STRATA)
    (pair,) = asked.pairs({"a": A, "b": B})
    d = A - B
    (plain,) = compare({"a": asked.linear(A), "b": asked.linear(B)}, bounded=False)
    (free,) = asked.pairs({"a": A, "b": B}, bounded=False)
    assert (free.low, free.high, free.p) == pytest.approx((plain.low, plain.high, plain.p))
    assert pair.low is not None
    assert free.low is not None
    assert pair.low < free.low  # an imagined failure of the heaviest query
    assert (pair.a, pair.b) == ("a", "b")
    assert (pair.difference, pair.t_p) == pytest.approx((estimate(d, STRATA).mean, estimate(d, STRATA).p))
    assert (pair.wins, pair.ties, pair.losses) == (3, 1, 1)
    assert pair.wilcoxon_p == pytest.approx(float(stats.wilcoxon(d[d != 0], method="exact").pvalue))
    mean = float(STRATA.weights @ d)
    assert pair.effect == pytest.approx(mean / np.sqrt(STRATA.weights @ (d - mean) ** 2))


def test_equal_shares_of_very_many_are_plain_queries() -> None:
    """The same pairs, the same set, the same comparison with an incumbent."""
    rng = np.random.default_rng(1)
    strata = Strata(np.full(40, 1 / 40), ["all"] * 40, [10**9] * 40)
    base = rng.uniform(0.3, 0.9, 40)
    scores = {"good": base, "bad": base - 0.3 + rng.normal(0, 0.01, 40), "alike": base + rng.normal(-0.01, 0.1, 40)}
    table, plain, asked = np.stack(list(scores.values()), axis=1), PerQuery(), PerQueryAsked(strata)
    assert asked.heaviest == pytest.approx(1)
    for one, other in zip(asked.pairs(scores), plain.pairs(scores), strict=True):
        assert (one.low, one.high, one.p, one.p_holm) == pytest.approx(
            (other.low, other.high, other.p, other.p_holm), abs=1e-6
        )
    assert asked.pairs(scores, among=scores) == asked.pairs(scores)
    assert asked.best_set(table).within.tolist() == plain.best_set(table).within.tolist() == [True, False, True]
    assert asked.versus(table, 0).low == pytest.approx(plain.versus(table, 0).low, abs=1e-6)


def test_a_whole_log_leaves_nothing_open_and_an_unknown_error_everything() -> None:
    table = np.stack((A, B, A), axis=1)
    whole = PerQueryAsked(Strata(STRATA.weights, ["all"] * 5, [5] * 5))
    unknown = PerQueryAsked(Strata(STRATA.weights, ["one", "head", "tail", "tail", "tail"], [9, 1, 30, 30, 30]))
    gap = whole.mean(A) - whole.mean(B)
    assert (whole.has_error, unknown.has_error, PerQueryAsked(STRATA).has_error) == (False, False, True)
    found = whole.best_set(table)
    assert found.within.tolist() == [True, False, True]
    assert found.least.tolist() == found.most.tolist() == pytest.approx([0, gap, 0])
    against = whole.versus(table, 1)
    assert (against.low[0], against.high[0], against.p_better[0]) == pytest.approx((gap, gap, 0))
    assert whole.p_equivalent([A - B], 0.9 * gap).tolist() == [1.0]
    assert whole.p_equivalent([A - B], 1.1 * gap).tolist() == [0.0]
    assert unknown.best_set(table).within.all()
    assert np.isinf(unknown.best_set(table).most).all()
    assert np.isinf(unknown.versus(table, 1).high).all()
    assert unknown.p_equivalent([A - B], 0.9).tolist() == [1.0]
    assert unknown.linear(A) == pytest.approx(A - A.mean() + unknown.mean(A))


def test_one_contender_has_no_pairs() -> None:
    for averaging in (PerQuery(), PerQueryAsked(STRATA)):
        assert averaging.pairs({"a": A}) == []


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
    everyone = {"a": A, "b": B, "c": A * B}
    for averaging in (PerQuery(), PerQueryAsked(STRATA)):
        assert averaging.pairs(everyone, among=["b", "c"]) == averaging.pairs(everyone)[2:]
        assert averaging.pairs(everyone, among=["b"]) == []


def test_what_is_not_known_is_none() -> None:
    """One query stands for nine: there is no interval; where nothing varies there is no effect in deviations."""
    (pair,) = PerQueryAsked(Strata(np.array([0.5, 0.5]), ["a", "b"], [1, 9])).pairs({"x": A[:2], "y": A[:2] - 0.5})
    assert (pair.low, pair.high, pair.effect) == (None, None, None)
    assert (pair.difference, pair.p, pair.p_holm) == pytest.approx((0.5, 1.0, 1.0))


def test_linearised_values_carry_mean_and_error() -> None:
    asked = PerQueryAsked(STRATA)
    for values in (A, B):
        assert asked.linear(values).mean() == pytest.approx(asked.mean(values))
    error = (estimate(A, STRATA).high - estimate(A, STRATA).low) / 2 / stats.t.ppf(0.975, 2)
    assert asked.linear(A).std(ddof=1) / np.sqrt(5) == pytest.approx(error)
    unbounded = asked.intervals(A[:, None], bounded=False)
    assert unbounded[0][0] == pytest.approx(estimate(A, STRATA).low)  # Student's with two degrees of freedom is wider


def test_an_imagined_failure_of_the_heaviest_query_speaks_against_equivalence() -> None:
    """The heaviest of five has 0.3 of the traffic, which is 1.5 times its plain share."""
    asked, d = PerQueryAsked(STRATA), 0.1 * (A - B)
    assert asked.heaviest == pytest.approx(1.5)
    assert asked.p_equivalent([d], 0.9)[0] == pytest.approx(equivalence_p(asked.linear(d), 0.9, worst=1.5))
    assert PerQuery().p_equivalent([d], 0.9)[0] == pytest.approx(equivalence_p(d, 0.9))


def test_a_mean_of_nothing_is_told_by_flips_and_by_traffic_by_the_strata() -> None:
    table = np.stack((A - B, np.zeros(5)), axis=1)
    assert PerQueryAsked(STRATA).p_zero(table).tolist() == pytest.approx([estimate(A - B, STRATA).p, 1.0])
    assert PerQuery().p_zero(table).tolist() == pytest.approx([sign_flip_test(A - B), 1.0])


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


NEEDS = ["a", "a", "a", "b", ""]


def test_queries_in_clusters_keep_their_mean_and_count_once() -> None:
    """By hand: deviations from the mean of 0.62 add up by cluster to 0.54, −0.52 and −0.02, of five queries."""
    by_need = averaging_of([None] * 5, 5, NEEDS)
    assert (by_need.clusters, by_need.weights, by_need.has_error) == (3, None, True)
    assert by_need.mean(A) == pytest.approx(PerQuery().mean(A))
    linear = by_need.linear(A)
    assert linear == pytest.approx([0.62 + 3 / 5 * 0.54, 0.62 - 3 / 5 * 0.52, 0.62 - 3 / 5 * 0.02])
    assert by_need.heaviest == pytest.approx(3 * 3 / 5)
    assert (by_need.count_units(A > 0.75), by_need.count_units(A > 0.0)) == (1, 3)


def test_the_error_of_unequal_clusters_is_that_of_a_ratio() -> None:
    """Cochran, Sampling Techniques, 6.13, by 2,000 draws: one cluster in four has five queries, the rest one."""
    rng = np.random.default_rng(4)
    errors, means = [], []
    for _ in range(2000):
        sizes = np.where(rng.random(60) < 0.25, 5, 1)
        values = np.repeat(rng.normal(0.1 * (sizes == 5), 0.2), sizes)
        averaging = averaging_of([None] * len(values), clusters=np.repeat(np.arange(60), sizes).astype(str).tolist())
        means.append(averaging.mean(values))
        errors.append(averaging.linear(values).std(ddof=1) / np.sqrt(60))
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.06)


def test_clusters_of_equal_size_are_tested_by_their_means() -> None:
    rng = np.random.default_rng(5)
    table = rng.random((40, 3))
    names = [str(at // 2) for at in range(40)]
    by_need, halves = averaging_of([None] * 40, 42, names), table.reshape(20, 2, 3).mean(axis=1)
    plain = PerQuery()
    assert by_need.intervals(table)[0] == pytest.approx(plain.intervals(halves)[0], abs=0.005)  # both are drawn
    assert by_need.best_set(table).p == pytest.approx(plain.best_set(halves).p)
    assert by_need.versus(table, 1).low == pytest.approx(plain.versus(halves, 1).low)
    assert by_need.p_zero(table - 0.5) == pytest.approx(plain.p_zero(halves - 0.5))
    d, small = 0.1 * (table[:, 0] - table[:, 1]), 0.1 * (halves[:, 0] - halves[:, 1])
    assert by_need.p_equivalent([d], 0.1) == pytest.approx(plain.p_equivalent([small], 0.1))
    (pair,) = by_need.pairs({"a": table[:, 0], "b": table[:, 1]})
    (other,) = plain.pairs({"a": halves[:, 0], "b": halves[:, 1]})
    assert (pair.low, pair.high, pair.p) == pytest.approx((other.low, other.high, other.p))
    assert (pair.t_p, pair.wilcoxon_p) == pytest.approx((other.t_p, other.wilcoxon_p))
    assert pair.wins + pair.ties + pair.losses == 40


def test_an_interval_over_some_clusters() -> None:
    names = ["a", "a", "b", "b", "c"]
    where = np.array([True, True, True, True, False])
    some = averaging_of([None] * 5, 42, names).intervals(A[:, None], where=where)
    assert some == averaging_of([None] * 4, 42, names[:4]).intervals(A[:4, None])


def test_clusters_by_traffic_leave_strata_alone() -> None:
    """Weights stay. What a stratum explains is part of the error, which is then no smaller."""
    rng = np.random.default_rng(6)
    values, drawn = rng.random(40), [Drawn(weight=1 / 40, stratum=str(at % 2), of=1000) for at in range(40)]
    names = [str(at // 2) for at in range(40)]
    by_need = averaging_of(drawn, 42, names)
    assert by_need.weights is not None
    assert by_need.mean(values) == pytest.approx(values.mean())
    assert by_need.clusters == 20
    assert by_need.linear(values) == pytest.approx(values.reshape(20, 2).mean(axis=1))
    whole = [Drawn(weight=1 / 40, stratum="all", of=40)] * 40
    assert not averaging_of(whole, 42, names).has_error
    assert averaging_of([None] * 3, 42, ["a", "b", ""]) == PerQuery(42)
    assert not averaging_of([None] * 3, 42, ["a", "a", "a"]).has_error  # one cluster alone has no error that is known


def test_queries_of_a_cluster_are_one_unit() -> None:
    clustered = averaging_of([None] * 5, clusters=["a", "a", "", "b", "b"])
    assert clustered.number_units(5).tolist() == [0, 0, 1, 2, 2]
    assert averaging_of([None] * 5).number_units(5).tolist() == [0, 1, 2, 3, 4]


def test_equal_differences_are_counted_by_cluster() -> None:
    """Three clusters of two: the flips that give as much are 2 of 2³."""
    averaging = averaging_of([None] * 6, clusters=["a", "a", "b", "b", "c", "c"])
    (pair,) = averaging.pairs({"x": np.full(6, 0.5), "y": np.full(6, 0.4)})
    assert pair.t_p == pytest.approx(0.25)
