"""Differences under rare failures: against scipy's tests of the same samples, and worlds of known truth."""

from __future__ import annotations

import numpy as np
import pytest
from bakeoff.statistics.guarded import equivalence_p, guard_differences, queries_for_equivalence
from bakeoff.statistics.small_samples import exact_interval
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from simulate import intervals, worlds


def _pair(seed: int, n: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return worlds.as_measured(2).draw(np.random.default_rng(seed), n)


def test_thin_sides_have_students_ends_with_one_failure_each() -> None:
    """Both sides of a jitter are thin: the first row fails where the second has its mean, and the reverse."""
    scores = np.random.default_rng(1).uniform(0.8, 0.9, 30)
    other = scores + np.random.default_rng(2).uniform(-0.12, -0.07, 30)
    d = scores - other
    found = guard_differences(np.stack((scores, other), axis=1), [(0, 1)])
    below, above = stats.ttest_1samp(np.append(d, -other.mean()), 0), stats.ttest_1samp(np.append(d, scores.mean()), 0)
    assert found.low[0] == pytest.approx(below.confidence_interval().low)
    assert found.high[0] == pytest.approx(above.confidence_interval().high)
    one_sided = [
        stats.ttest_1samp(np.append(d, -other.mean()), 0, alternative="greater").pvalue,
        stats.ttest_1samp(np.append(d, scores.mean()), 0, alternative="less").pvalue,
    ]
    assert found.p[0] == pytest.approx(2 * min(one_sided))


def test_sides_that_are_not_thin_and_values_without_bounds_have_students_interval() -> None:
    table = np.stack((np.tile([0.0, 0.5, 1.0], 20), np.tile([1.0, 0.5, 0.1], 20)), axis=1)
    expected = stats.ttest_rel(table[:, 0], table[:, 1])
    found = guard_differences(table, [(0, 1)])
    assert (found.low[0], found.high[0]) == pytest.approx(tuple(expected.confidence_interval()))
    assert found.p[0] == pytest.approx(expected.pvalue)
    narrow = table[:, :] * 1e-3
    found = guard_differences(narrow, [(0, 1)], bounded=False)
    assert (found.low[0], found.high[0]) == pytest.approx(tuple(stats.ttest_rel(*narrow.T).confidence_interval()))


@pytest.mark.parametrize(("tenth", "guarded"), [(0.0, True), (0.24, False)])
def test_ten_queries_far_from_the_median_are_enough(tenth: float, guarded: bool) -> None:
    """Nine lose 0.7 and the tenth this little or more, beside forty that tie and ten that gain."""
    one = np.concatenate((np.full(40, 0.5), np.full(9, 0.0), [0.48 - 2 * tenth], np.full(10, 1.0)))
    other = np.full(60, 0.5)
    other[40:49] = 0.7
    expected = stats.ttest_rel(one, other).confidence_interval()
    found = guard_differences(np.stack((one, other), axis=1), [(0, 1)])
    assert bool(found.low[0] < expected.low - 1e-6) is guarded
    assert found.high[0] == pytest.approx(expected.high)


@settings(max_examples=80)
@given(st.integers(2, 40), st.integers(0, 10_000), st.sampled_from([0.8, 0.95]), st.booleans())
def test_interval_and_p_agree_and_mirror(n: int, seed: int, level: float, bounded: bool) -> None:
    table = np.random.default_rng(seed).integers(0, 5, (n, 4)) / 4 + np.array([0, 0, 0, 0.0])
    pairs = [(0, 1), (1, 0), (2, 3), (0, 3)]
    found = guard_differences(table, pairs, bounded=bounded, level=level)
    outside = (found.low > 0) | (found.high < 0)
    np.testing.assert_array_equal(outside, found.p < 1 - level)
    assert (found.low[0], found.high[0]) == pytest.approx((-found.high[1], -found.low[1]), nan_ok=True)


def test_equal_rows_have_the_width_that_their_number_allows() -> None:
    same = np.random.default_rng(3).random(20)
    found = guard_differences(np.stack((same, same), axis=1), [(0, 1)])
    assert found.p[0] == 1
    bound = 1 - 0.025 ** (1 / 20)  # a loss of 1 that 20 queries do not meet with 2.5%
    assert (found.low[0], found.high[0]) == pytest.approx((-bound, bound), abs=0.01)
    nothing = guard_differences(np.zeros((20, 2)), [(0, 1)])
    assert (nothing.low[0], nothing.high[0]) == exact_interval(np.zeros(20), (-1.0, 1.0))
    assert np.isnan(guard_differences(np.stack((same, same), axis=1), [(0, 1)], bounded=False).low).all()
    assert np.isnan(guard_differences(np.array([[0.3, 0.5]]), [(0, 1)]).low).all()


def test_equivalence_is_two_one_sided_tests_with_a_failure_on_each_side() -> None:
    one, other = _pair(4, 60).T
    d = 0.1 * (one - other)
    greater = stats.ttest_1samp(np.append(d, -1), -0.05, alternative="greater").pvalue
    less = stats.ttest_1samp(np.append(d, 1), 0.05, alternative="less").pvalue
    assert equivalence_p(d, 0.05) == pytest.approx(max(greater, less))
    assert equivalence_p([0.0], 0.05) > 0.05


@pytest.mark.parametrize(("margin", "about"), [(0.05, 53), (0.02, 132), (0.1, 26)])
def test_fewest_queries_for_equivalence(margin: float, about: int) -> None:
    """Of n equal scores and one failure: (1 + t) / (n + 1) below the margin."""
    fewest = queries_for_equivalence(margin)
    assert fewest == pytest.approx(about, abs=1)
    assert fewest is not None
    assert equivalence_p(np.zeros(fewest), margin) < 0.05 < equivalence_p(np.zeros(fewest - 1), margin)
    assert (queries_for_equivalence(margin, 0.2) or 0) > fewest
    assert queries_for_equivalence(0.0) is None


@pytest.mark.slow
@pytest.mark.parametrize("at", range(len(worlds.confidence_worlds(2))))
def test_intervals_hold_in_every_world(at: int) -> None:
    world = worlds.confidence_worlds(2)[at]
    for line in (intervals.means(world, (20, 50), 100), *intervals.differences(world, (20, 100, 300), 300)):
        assert line.missed == [], line


@pytest.mark.slow
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("margin", intervals.MARGINS)
def test_a_loss_as_large_as_the_margin_is_not_called_equivalence(margin: float, ties: bool) -> None:
    world = worlds.loss_by_failures(margin, ties=ties)
    for line in (
        *intervals.equivalence(world, margin, (20, 100, 300), 400, at_most=0.05),
        *intervals.equivalence(worlds.by_traffic(world, 0.2, 0.8), margin, (100,), 400, at_most=0.05),
        *intervals.differences(world, (20, 50, 100), 300),
        *intervals.weighted_means(margin, (20, 50), 100),
    ):
        assert line.missed == [], line
