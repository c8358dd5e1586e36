from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from bakeoff.statistics.columns import across, affordable, differences_of, spread, table_of
from bakeoff.statistics.compare import (
    compare,
    compare_chosen,
    effect_size,
    kendall_tau,
    nearest_pairs,
    wins_ties_losses,
)
from bakeoff.statistics.intervals import bca_intervals
from bakeoff.statistics.tests import (
    first_equal,
    holm,
    holm_of_distinct,
    hypothesis_of,
    sign_flip_test,
    sign_flip_tests,
    t_test,
    wilcoxon,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.errors import refuses
from tests.statistics.one_column import bca_of_mean

# Sign flips


def test_flips_counted_by_hand() -> None:
    assert sign_flip_test([1, 2, 3]) == 2 / 8  # only +++ and −−− reach 6
    assert sign_flip_test([1, 1, 1, 1, -1]) == 12 / 32  # |sum| ≥ 3: all alike (2) or one unlike (10)
    assert sign_flip_test([1, -1]) == 1
    assert sign_flip_test([5]) == 1


def test_equal_contenders_are_one_hypothesis() -> None:
    """The same vectors in two stores must not make the other comparisons look less sure."""
    rng = np.random.default_rng(1)
    a, b, c = rng.random(12), rng.random(12), rng.random(12)
    alone = {(pair.a, pair.b): pair for pair in compare({"a": a, "b": b, "c": c})}
    twice = {(pair.a, pair.b): pair for pair in compare({"a": a, "a again": a.copy(), "b": b, "c": c})}
    for pair in (("a", "b"), ("a", "c"), ("b", "c")):
        assert twice[pair].p_holm == alone[pair].p_holm
    assert twice["a again", "b"].p_holm == alone["a", "b"].p_holm
    assert twice["a", "a again"].p_holm == 1


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=9))
def test_small_samples_are_enumerated_without_being_fooled_by_rounding(tenths: list[int]) -> None:
    """0.1 + 0.2 is not 0.3 in floating point, but it is the same sum."""
    exact = [Fraction(tenth, 10) for tenth in tenths]
    observed = abs(sum(exact, Fraction()))
    signed = [abs(sum((s * d for s, d in zip(signs, exact, strict=True)), Fraction()))
              for signs in itertools.product((1, -1), repeat=len(exact))]  # fmt: skip
    expected = Fraction(sum(total >= observed for total in signed), len(signed))
    assert sign_flip_test([tenth / 10 for tenth in tenths]) == pytest.approx(float(expected), abs=1e-15)


def test_enumeration_is_scipys_permutation_test() -> None:
    d = np.random.default_rng(3).normal(0.4, 1, size=11)
    expected = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue
    assert sign_flip_test(d) == pytest.approx(float(expected), abs=1e-15)


@pytest.mark.parametrize(("n", "wins"), [(20, 14), (20, 10), (21, 15), (60, 38), (200, 101), (1003, 540)])
def test_equal_steps_are_a_binomial_test(n: int, wins: int) -> None:
    """Exact up to 20 queries, within sampling error of the exact value beyond."""
    d = np.where(np.arange(n) < wins, 0.25, -0.25)
    exact = float(stats.binomtest(wins, n).pvalue)
    error = 0.0 if n <= 20 else 4 * math.sqrt(exact * (1 - exact) / 100_000) + 2e-5
    assert sign_flip_test(d) == pytest.approx(exact, abs=error + 1e-12)


def test_queries_without_a_difference_change_nothing() -> None:
    d = np.array([0.5, 0.25, -0.125, 0.75, 0.5, 0.375])
    assert sign_flip_test(np.concatenate((d, np.zeros(500)))) == sign_flip_test(d)
    assert sign_flip_test(np.zeros(30)) == 1
    assert sign_flip_test([]) == 1


def test_sampled_p_is_never_zero_and_never_depends_on_the_day() -> None:
    d = np.random.default_rng(0).normal(5, 1, size=50)
    assert sign_flip_test(d) == 1 / 100_001
    d = d - 4.9
    assert sign_flip_test(d) == sign_flip_test(d)
    assert sign_flip_test(d) == pytest.approx(sign_flip_test(d, seed=7), abs=0.01)
    assert sign_flip_test(d) == sign_flip_test(-d) == sign_flip_test(d * 8)


def test_p_is_uniform_when_nothing_differs() -> None:
    rng = np.random.default_rng(1)
    p = sign_flip_tests(rng.normal(size=(30, 400)), flips=2000)
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_pairs_that_share_the_flips_get_the_p_they_get_alone() -> None:
    values = np.random.default_rng(2).random((75, 4))
    values[3:, 3] = values[3:, 2]  # a pair that differs on three queries only is enumerated
    pairs = list(itertools.combinations(range(4), 2))
    together = sign_flip_tests(values, pairs)
    alone = [sign_flip_test(values[:, i] - values[:, j]) for i, j in pairs]
    assert together.tolist() == pytest.approx(alone, abs=2e-5)
    assert together[-1] * 8 == pytest.approx(round(together[-1] * 8), abs=1e-12)


def test_many_tests_get_enough_flips_for_holm() -> None:
    """12,500 queries would get 8,000 flips; 60 tests need 12,000, so that 60 / 12,001 is a tenth of 0.05."""
    table = np.repeat(np.random.default_rng(3).random((12_500, 1)), 60, axis=1)
    p = sign_flip_tests(table)
    assert p.tolist() == [1 / 12_001] * 60
    assert holm(p).max() == pytest.approx(60 / 12_001)


# The tests beside it


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=30))
def test_paired_t_is_scipys(hundredths: list[int]) -> None:
    d = np.array(hundredths) / 100
    if np.ptp(d) > 0:
        expected = float(stats.ttest_1samp(d, 0).pvalue)
        assert t_test(d) == pytest.approx(expected, abs=1e-12)


def test_paired_t_where_there_is_no_spread() -> None:
    assert t_test([0.0, 0.0, 0.0]) == 1
    assert t_test([0.3]) == 1
    assert t_test([]) == 1
    assert t_test([0.1, 0.1]) == 2 / 2**2  # all signs alike: two of the four ways to flip them
    assert t_test([-0.1, -0.1, -0.1]) == sign_flip_test([-0.1, -0.1, -0.1]) == 2 / 2**3


def test_wilcoxon_is_scipys_and_leaves_out_zeros() -> None:
    d = np.array([0.11, -0.05, 0.32, 0.0, 0.27, -0.13, 0.41, 0.0, 0.08])
    assert wilcoxon([0.1, 0.2, -0.3, 0.4]) == 10 / 16  # ranks 1 + 2 + 4; sums of 10, 9, 8 come once, 7 twice
    assert wilcoxon(d) == pytest.approx(float(stats.wilcoxon(d[d != 0]).pvalue))
    assert wilcoxon(np.zeros(5)) == 1
    assert wilcoxon([]) == 1


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_wilcoxon_with_ties_is_every_pattern_of_signs(tenths: list[int]) -> None:
    """Ranks by counting: half a place for each that ties, itself included, and one for each that is smaller."""
    sizes = [abs(tenth) for tenth in tenths if tenth]
    ranks = [Fraction(1, 2) + sum(Fraction((b < a) + (b <= a), 2) for b in sizes) for a in sizes]
    signed = [abs(sum((s * r for s, r in zip(signs, ranks, strict=True)), Fraction()))
              for signs in itertools.product((1, -1), repeat=len(ranks))]  # fmt: skip
    seen = abs(sum((r if d > 0 else -r for d, r in zip(filter(None, tenths), ranks, strict=True)), Fraction()))
    expected = Fraction(sum(total >= seen for total in signed), len(signed))
    assert wilcoxon([tenth / 10 for tenth in tenths]) == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 20, 49, 50])
def test_wilcoxon_without_ties_is_scipys_exact_one(n: int) -> None:
    d = np.random.default_rng(n).normal(0.3, 1, size=n)
    assert wilcoxon(d) == pytest.approx(float(stats.wilcoxon(d, method="exact").pvalue), rel=1e-12)


@pytest.mark.parametrize("n", [51, 52, 300])
def test_wilcoxon_of_many_is_scipys_normal_one_corrected_for_ties(n: int) -> None:
    d = np.random.default_rng(n).integers(1, 6, size=n) * np.where(np.arange(n) % 5 < 2, -0.1, 0.1)
    assert wilcoxon(d) == pytest.approx(float(stats.wilcoxon(d, method="asymptotic").pvalue), rel=1e-9)


def test_wilcoxon_with_ties_is_scipys_permutation_test() -> None:
    d = np.array([0.5, 0.5, 0.5, -0.5, 1.0, 1.0, -0.25, 0.25, 1.0])
    expected = stats.wilcoxon(d, method=stats.PermutationMethod(n_resamples=10_000)).pvalue
    assert wilcoxon(d) == pytest.approx(float(expected), abs=1e-12)


def test_wilcoxon_ranks_what_rounding_split_as_tied() -> None:
    split, tied = [0.1 + 0.2, 0.3, -0.3, 0.5, 0.7], [0.3, 0.3, -0.3, 0.5, 0.7]
    assert split[0] != tied[0]
    assert wilcoxon(split) == wilcoxon(tied)


def test_wilcoxon_ranks_whatever_is_larger_than_rounding() -> None:
    """Five wins, the least of 4e-12: 2 of 32 patterns; without it they would be four, and 2 of 16."""
    assert wilcoxon([4e-12, 0.1, 0.2, 0.3, 0.4]) == 2 / 32
    assert wilcoxon([4e-13, 0.1, 0.2, 0.3, 0.4]) == 2 / 16


def test_holm_by_hand() -> None:
    # sorted: .005·4, .01·3, .03·2, then .04·1, which may not fall below the .06 before it
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_lies_between_p_and_bonferroni_and_keeps_the_order(p: list[float]) -> None:
    adjusted = holm(p)
    assert (adjusted >= np.array(p)).all()
    assert (adjusted <= np.minimum(1, np.array(p) * len(p)) + 1e-12).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()


def test_effect_size_by_hand() -> None:
    assert effect_size([1, 2, 3]) == pytest.approx(2.0)  # mean 2, standard deviation 1
    assert effect_size([-1, -2, -3]) == pytest.approx(-2.0)
    assert effect_size([0, 0]) == 0
    assert effect_size([0.2, 0.2]) == math.inf


def test_wins_ties_losses_do_not_count_rounding() -> None:
    a, b = np.array([0.5, 0.1 + 0.2, 0.0, 1.0]), np.array([0.25, 0.3, 0.5, 1.0])
    assert wins_ties_losses(differences_of(a, b)) == (1, 2, 1)
    assert wins_ties_losses(a - b) == (1, 2, 1)


# Intervals


@pytest.mark.parametrize("shape", ["skewed", "symmetric", "bounded"])
def test_bca_is_scipys(shape: str) -> None:
    rng = np.random.default_rng(5)
    x = {"skewed": rng.exponential(size=40), "symmetric": rng.normal(size=60), "bounded": rng.beta(0.3, 2, size=80)}[
        shape
    ]
    expected = stats.bootstrap((x,), np.mean, n_resamples=40_000, method="BCa", rng=np.random.default_rng(6))
    low, high = bca_of_mean(x, resamples=40_000)
    tolerance = 0.03 * (expected.confidence_interval.high - expected.confidence_interval.low)
    assert low == pytest.approx(float(expected.confidence_interval.low), abs=tolerance)
    assert high == pytest.approx(float(expected.confidence_interval.high), abs=tolerance)


def test_bca_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(8)
    samples = rng.exponential(size=(50, 400))  # 400 experiments of 50 queries with a skewed score, true mean 1
    low, high = bca_intervals(samples, level=0.9, resamples=2000)
    covered = np.count_nonzero((low <= 1) & (high >= 1)) / 400
    assert 0.84 <= covered <= 0.94
    # the correction is for the skew: it misses on both sides, where symmetric intervals miss mostly above
    assert np.count_nonzero(high < 1) <= 40


def test_bca_moves_with_the_data() -> None:
    x = np.random.default_rng(9).random(30)
    low, high = bca_of_mean(x)
    assert low < x.mean() < high
    assert bca_of_mean(x + 3) == pytest.approx((low + 3, high + 3))
    assert bca_of_mean(-2 * x, level=0.5)[0] > -2 * high
    assert bca_of_mean(x) == (low, high)


def test_bca_of_pairs_is_the_bca_of_their_differences() -> None:
    values = np.random.default_rng(10).random((25, 3))
    low, high = bca_intervals(values, [(0, 1), (2, 0)])
    assert (low[0], high[0]) == pytest.approx(bca_of_mean(values[:, 0] - values[:, 1]), abs=1e-9)
    assert (low[1], high[1]) == pytest.approx(bca_of_mean(values[:, 2] - values[:, 0]), abs=1e-9)


def test_bca_counts_means_equal_to_the_samples_as_half_below() -> None:
    """With right and wrong answers many resamples have the very mean of the sample, but for rounding."""
    seven_of_ten = np.array([1.0] * 7 + [0.0] * 3)
    low, high = bca_of_mean(seven_of_ten, resamples=20_000)
    mirrored = bca_of_mean(1 - seven_of_ten, resamples=20_000)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-9)
    assert bca_of_mean(seven_of_ten / 3) == pytest.approx(tuple(end / 3 for end in bca_of_mean(seven_of_ten)))


def test_bca_at_an_extreme_level_stays_in_order() -> None:
    x = np.array([0.0] * 6 + [1.0])
    low, high = bca_of_mean(x, level=0.99999)
    assert low <= x.mean() <= high <= 1


def test_bca_where_there_is_no_spread() -> None:
    assert bca_of_mean([0.3] * 7) == pytest.approx((0.3, 0.3), abs=1e-15)
    assert all(math.isnan(end) for end in bca_of_mean([0.3]))
    low, high = bca_of_mean([0.0] * 40 + [1.0])
    assert 0 <= low < 1 / 41 < high < 1


# Comparisons


def three() -> dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    rng = np.random.default_rng(11)
    good = rng.uniform(0.3, 0.9, size=60)
    return {"poor": good - 0.2 + rng.normal(0, 0.05, 60), "good": good, "alike": good + rng.normal(0, 0.05, 60)}


def test_every_pair_is_compared_once_by_every_test() -> None:
    scores = three()
    pairs = compare(scores)
    assert [(pair.a, pair.b) for pair in pairs] == [("poor", "good"), ("poor", "alike"), ("good", "alike")]
    assert [pair.p_holm for pair in pairs] == pytest.approx(holm([pair.p for pair in pairs]).tolist())
    for pair in pairs:
        d = scores[pair.a] - scores[pair.b]
        assert pair.difference == pytest.approx(d.mean())
        below = stats.ttest_1samp(np.append(d, -scores[pair.b].mean()), 0)  # both sides are thin: one failure on each
        above = stats.ttest_1samp(np.append(d, scores[pair.a].mean()), 0)
        expected = below.confidence_interval().low, above.confidence_interval().high
        assert (pair.low, pair.high) == pytest.approx(expected)
        assert pair.low is not None
        assert pair.high is not None
        assert (pair.low > 0 or pair.high < 0) == (pair.p < 0.05)
        assert pair.t_p == pytest.approx(float(stats.ttest_rel(scores[pair.a], scores[pair.b]).pvalue), abs=1e-12)
        assert pair.wilcoxon_p == pytest.approx(float(stats.wilcoxon(d).pvalue), abs=1e-12)
        assert pair.effect == pytest.approx(d.mean() / d.std(ddof=1))
        assert (pair.wins, pair.ties, pair.losses) == ((d > 0).sum(), 0, (d < 0).sum())


def test_the_other_way_round_is_the_same_with_the_other_sign() -> None:
    scores = three()
    ahead = compare({"a": scores["poor"], "b": scores["good"]})[0]
    back = compare({"b": scores["good"], "a": scores["poor"]})[0]
    assert ahead.effect is not None
    assert back.effect == pytest.approx(-ahead.effect)
    assert (ahead.difference, ahead.wins) == pytest.approx((-back.difference, back.losses))
    assert (ahead.p, ahead.t_p, ahead.wilcoxon_p) == pytest.approx((back.p, back.t_p, back.wilcoxon_p))


def test_equal_contenders_tie() -> None:
    same = np.array([0.1, 0.5, 0.9])
    pair = compare({"a": same, "b": same.copy()})[0]
    assert (pair.difference, pair.effect) == (0, 0)
    assert (pair.low, pair.high) == pytest.approx(
        (-(1 - 0.025 ** (1 / 3)), 1 - 0.025 ** (1 / 3)), abs=0.01
    )  # of three queries
    assert (pair.p, pair.p_holm, pair.t_p, pair.wilcoxon_p) == (1, 1, 1, 1)
    assert (pair.wins, pair.ties, pair.losses) == (0, 3, 0)


def test_one_query_tells_nothing() -> None:
    pair = compare({"a": [1.0], "b": [0.0]})[0]
    assert (pair.p, pair.t_p, pair.wilcoxon_p) == (1, 1, 1)
    assert (pair.low, pair.high, pair.effect) == (None, None, None)


def test_what_is_not_paired_is_refused() -> None:
    with refuses(ValueError):
        compare({"a": [0.1, 0.2], "b": [0.1]})
    with refuses(ValueError):
        compare({"a": [], "b": []})
    with refuses(ValueError, "finite"):
        compare({"a": [0.1, math.nan], "b": [0.1, 0.2]})
    assert compare({"a": [0.1]}) == []


# Agreement


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_kendall_is_scipys_tau_b(pairs: list[tuple[int, int]]) -> None:
    a, b = zip(*pairs, strict=True)
    expected = float(stats.kendalltau(a, b).statistic)
    assert kendall_tau(a, b) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_kendall_by_hand() -> None:
    assert kendall_tau([1, 2, 3], [10, 20, 30]) == 1
    assert kendall_tau([1, 2, 3], [3, 2, 1]) == -1
    assert kendall_tau([1, 2, 3, 4], [2, 1, 3, 4]) == pytest.approx(4 / 6)  # 5 pairs agree, 1 does not
    assert math.isnan(kendall_tau([1, 1], [1, 2]))
    assert math.isnan(kendall_tau([1], [1]))


# Tables and what is left where there is little


def test_a_table_has_one_column_for_each_contender() -> None:
    assert table_of([[1, 2, 3], [4, 5, 6]]).tolist() == [[1, 4], [2, 5], [3, 6]]
    assert table_of([]).shape == (0, 0)
    with refuses(ValueError):
        table_of([[[1.0]]])
    assert across(np.array([[5.0, 4.0], [1.0, 1.0], [0.0, 2.0]]), [(0, 1), (2, 0)]).tolist() == [[4, 3], [-5, -2]]


def test_rounding_is_no_spread_and_no_difference() -> None:
    assert spread(np.array([0.3, 0.3 + 1e-13])) == 0
    assert spread(np.array([0.3])) == 0
    assert spread(np.array([1.0, 2.0])) == pytest.approx(np.sqrt(0.5))
    assert differences_of([0.3, 0.5], [0.3 + 1e-13, 0.25]).tolist() == [0, 0.25]


@pytest.mark.parametrize(
    ("queries", "afforded"), [(0, 100_000), (1000, 100_000), (2000, 50_000), (100_000, 1000), (10**7, 1000)]
)
def test_so_many_repetitions_are_affordable(queries: int, afforded: int) -> None:
    """A hundred million signs in all, but a thousand repetitions always."""
    assert affordable(100_000, queries) == afforded
    assert affordable(500, queries) == 500


def test_chosen_pairs_have_holms_correction_among_themselves() -> None:
    scores = three()
    chosen = compare_chosen(scores, [("good", "poor"), ("alike", "good")])
    alone = [compare({a: scores[a], b: scores[b]})[0] for a, b in (("good", "poor"), ("alike", "good"))]
    assert [(pair.a, pair.b, pair.p) for pair in chosen] == [(pair.a, pair.b, pair.p) for pair in alone]
    assert [pair.p_holm for pair in chosen] == pytest.approx(holm([pair.p for pair in alone]).tolist())


def test_the_nearest_pairs_are_those_of_the_best_and_of_neighbours() -> None:
    """Of fewer than 1,001 pairs all stay; of more, 45 with the best and 44 of neighbours that are not the best."""
    means = np.random.default_rng(3).permutation(46) / 46
    pairs = list(itertools.combinations(range(46), 2))
    assert nearest_pairs(means, pairs[:1000]) == pairs[:1000]
    place = {at: int((means > means[at]).sum()) for at in range(46)}
    kept = nearest_pairs(means, pairs)
    assert len(kept) == 89
    assert all(0 in (place[i], place[j]) or abs(place[i] - place[j]) == 1 for i, j in kept)


def test_differences_that_are_equal_everywhere_are_no_proof_on_three_queries() -> None:
    pair = compare({"a": [0.5, 0.6, 0.7], "b": [0.4, 0.5, 0.6]})[0]
    assert (pair.effect, pair.t_p) == (None, 2 / 2**3)
    unmet = 1 - 0.025 ** (1 / 3)  # what three queries miss with 2.5%, over the room that is left up to 1 and down to −1
    assert (pair.low, pair.high) == pytest.approx((0.1 - 1.1 * unmet, 0.1 + 0.9 * unmet), abs=0.01)
    pair = compare({"a": [0.5, 0.9], "b": [0.4, 0.5]})[0]
    assert pair.t_p == pytest.approx(float(stats.ttest_1samp([0.1, 0.4], 0).pvalue))
    assert effect_size([0.2, -0.2]) == 0
    assert effect_size([-0.2, -0.2]) == -math.inf
    assert wins_ties_losses([1e-12, -1e-12, 2e-12, -2e-12]) == (1, 2, 1)


def test_columns_that_only_rounding_separates_are_one() -> None:
    table = np.array([[0.3, 0.3 + 2e-13, 0.3 + 2e-12], [0.5, 0.5, 0.5]])
    assert first_equal(table) == [0, 0, 2]


def test_tests_of_one_hypothesis_count_once() -> None:
    """Three distinct hypotheses, one of them tested twice: 3 × 0.01, 2 × 0.02, 0.04; nothing to test stays 1."""
    adjusted = holm_of_distinct([0.01, 0.02, 0.01, 0.04, 0.3], ["a", "b", "a", "c", None])
    assert adjusted.tolist() == pytest.approx([0.03, 0.04, 0.03, 0.04, 1.0])


def test_equal_differences_and_their_negatives_are_one_hypothesis() -> None:
    d = np.array([0.0, -0.2, 0.5])
    assert hypothesis_of(d) == hypothesis_of(-d) == hypothesis_of(d + 1e-15)
    assert hypothesis_of(d) != hypothesis_of(np.abs(d))
    assert hypothesis_of(np.array([0.0, -0.0, 1e-14])) is None


def test_chosen_pairs_that_differ_alike_count_once() -> None:
    """A difference in two stores is one hypothesis, and equal rows none; another difference makes it two."""
    ones, six, five = np.ones(12), np.ones(12), np.ones(12)
    six[:6], five[:5] = 0, 0
    scores = {"old": ones, "again": ones, "faiss": six, "chroma": six.copy(), "five": five}
    p, q = (compare({"new": new, "old": ones})[0].p for new in (six, five))
    pairs = compare_chosen(scores, [("faiss", "old"), ("chroma", "old"), ("again", "old")])
    assert [pair.p_holm for pair in pairs] == pytest.approx([p, p, 1.0])
    pairs = compare_chosen(scores, [("faiss", "old"), ("chroma", "old"), ("five", "old")])
    assert [pair.p_holm for pair in pairs] == pytest.approx([2 * p, 2 * p, max(2 * p, q)])
