"""Intervals on data of known truth, where a bootstrap knows too little; the exact one against scipy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.core.facts import fact
from bakeoff.statistics.compare import compare
from bakeoff.statistics.intervals import bca_intervals
from bakeoff.statistics.small_samples import (
    doubt,
    exact_interval,
    mean_intervals,
    unlike,
)
from bakeoff.statistics.tests import sign_flip_test
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

SETS = 400


def _mostly(rng: np.random.Generator, share: float, common: float, n: int) -> Values:
    """Data sets in columns: a share of the values is the common one, the others are spread evenly over 0 to 1."""
    return np.where(rng.random((n, SETS)) < share, common, rng.random((n, SETS)))


@pytest.mark.parametrize(
    ("share", "common", "n"), [(0.8, 1.0, 10), (0.8, 1.0, 20), (0.9, 0.0, 20), (0.95, 1.0, 20), (0.95, 1.0, 40)]
)
def test_intervals_of_few_distinct_values_cover_the_mean(share: float, common: float, n: int) -> None:
    table = _mostly(np.random.default_rng(1), share, common, n)
    truth = share * common + (1 - share) / 2
    low, high = mean_intervals(table, resamples=1500)
    assert np.mean((low <= truth) & (truth <= high)) >= 0.93
    low, high = bca_intervals(table, resamples=1500)
    assert np.mean((low <= truth) & (truth <= high)) < 0.93  # which is why


def _six_digits(value: float) -> float:
    """Two values that differ by a rounding error count as one only as long as nobody multiplies them."""
    return round(value, 6)


@pytest.mark.parametrize(("ones", "n", "level"), [(7, 10, 0.95), (1, 30, 0.9), (0, 4, 0.95), (5, 5, 0.8)])
def test_of_some_zeros_and_ones_it_is_clopper_and_pearsons(ones: int, n: int, level: float) -> None:
    expected = stats.binomtest(ones, n).proportion_ci(level, "exact")
    mixed = np.random.default_rng(7).permutation([1.0] * ones + [0.0] * (n - ones))
    assert exact_interval(mixed, level=level) == pytest.approx((expected.low, expected.high), abs=0.01)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 3.0)])
def test_of_other_values_it_is_the_worst_mean_that_sorted_uniforms_allow(bounds: tuple[float, float]) -> None:
    """Learned-Miller and Thomas's bound as they write it: all n uniforms of each draw, sorted, and every gap."""
    values = np.array([0.9, 0.1, 0.4, 0.4, 0.7])
    u = np.sort(np.random.default_rng(8).random((100_000, 5)), axis=1)
    above = bounds[1] - u @ np.diff([*np.sort(values), bounds[1]])
    below = bounds[0] + u @ np.diff([*np.sort(-values), -bounds[0]])
    expected = (np.quantile(below, 0.025), np.quantile(above, 0.975))
    assert exact_interval(values, bounds) == pytest.approx(expected, abs=0.012 * (bounds[1] - bounds[0]))


@pytest.mark.parametrize(("ratio", "doubted"), [(1.03, True), (0.97, False)])
def test_a_skew_is_doubted_from_ten_times_its_square_on(ratio: float, doubted: bool) -> None:
    """One far value among 39, moved until scipy's skewness squared, times ten, is just above or below n."""
    near = np.linspace(-1, 1, 39)
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        far_enough = 10 * stats.skew(np.append(near, middle)) ** 2 >= ratio * 40
        low, high = (low, middle) if far_enough else (middle, high)
    assert bool(doubt(np.append(near, high))) is doubted
    assert bool(doubt(np.append(near, -high))) is doubted


def test_ten_values_that_differ_from_the_most_frequent_are_enough() -> None:
    nine, ten = ([0.0] * 30 + [(-1.0) ** at * (1 + at / 10) for at in range(count)] for count in (9, 10))
    assert doubt(np.array(nine)) == fact("few_differ", differing=9, queries=39)
    assert doubt(np.array(ten)) is None
    assert doubt(np.array([0.3, -0.2])) is not None
    assert unlike([]) == 0


@pytest.mark.parametrize("n", [2, 14, 100])
def test_a_mean_has_the_exact_interval_where_its_values_have_bounds(n: int) -> None:
    table = np.stack((np.linspace(0, 1, n), np.linspace(0.2, 0.4, n) ** 2), axis=1)
    low, high = mean_intervals(table)
    for at in range(2):
        assert (low[at], high[at]) == pytest.approx(exact_interval(table[:, at]))
    beyond = np.append(np.linspace(0, 1, 9), 1.5)[:, None]  # not from 0 to 1: there is no exact one
    student = stats.ttest_1samp(beyond[:, 0], 0).confidence_interval()
    spanned = min(student.low, bca_intervals(beyond)[0][0]), max(student.high, bca_intervals(beyond)[1][0])
    assert tuple(float(end[0]) for end in mean_intervals(beyond)) == pytest.approx(spanned)


@given(st.integers(2, 60), st.data())
def test_of_zeros_and_ones_it_is_clopper_and_pearsons(n: int, data: st.DataObject) -> None:
    ones = data.draw(st.integers(0, n))
    expected = stats.binomtest(ones, n).proportion_ci(0.95, "exact")
    assert exact_interval([1.0] * ones + [0.0] * (n - ones)) == pytest.approx((expected.low, expected.high), abs=0.015)


@given(st.lists(st.floats(0, 1).map(_six_digits), min_size=2, max_size=30), st.floats(-3, 3), st.floats(0.1, 4))
def test_the_exact_interval_holds_the_mean_and_moves_with_its_values(
    values: list[float], moved: float, times: float
) -> None:
    low, high = exact_interval(values)
    assert -1e-12 <= low <= np.mean(values) + 1e-12
    assert np.mean(values) - 1e-12 <= high <= 1 + 1e-12
    other = exact_interval(np.array(values) * times + moved, (moved, times + moved))
    assert other == pytest.approx((low * times + moved, high * times + moved), abs=1e-6)


@pytest.mark.parametrize("draw", [lambda rng: np.where(rng.random(20) < 0.95, -0.02, 0.38)])
def test_a_skewed_difference_that_is_none_is_doubted(draw: Callable[[np.random.Generator], Values]) -> None:
    """The mean is 0, and more than a third of such data sets are significant: all of them carry the warning."""
    rng = np.random.default_rng(3)
    wrong = [d for d in (draw(rng) for _ in range(300)) if sign_flip_test(d) <= 0.05]
    assert len(wrong) > 0.25 * 300
    assert all(doubt(d) for d in wrong)


def test_what_is_doubted_and_what_is_not() -> None:
    rng = np.random.default_rng(4)
    assert doubt(rng.normal(size=50)) is None
    assert doubt(np.zeros(30)) is None
    assert doubt(np.array([0.3])) is None
    assert doubt(np.array([0.0] * 27 + [0.1, 0.2, 0.3])) == fact("few_differ", differing=3, queries=30)
    one_far_off = np.concatenate((rng.normal(-0.02, 0.001, 29), [0.6]))
    skewed = doubt(one_far_off)
    assert skewed is not None
    assert skewed.id == "skewed"
    assert skewed.arguments == {"skew": pytest.approx(stats.skew(one_far_off)), "queries": 30}
    assert unlike([1, 1, 1, 0.5, 0.2]) == 2
    assert compare({"a": [0.1] * 20, "b": [0.2] * 20})[0].doubt == fact("few_differ", differing=0, queries=20)


def test_one_query_has_no_interval_anywhere() -> None:
    assert all(np.isnan(bound).all() for bound in mean_intervals(np.array([[0.5, 1.0]])))


@pytest.mark.parametrize("n", [2, 5, 10])
def test_means_without_bounds_have_what_bca_and_student_span(n: int) -> None:
    """Logarithms of average precision, as GMAP averages them: BCa alone covers 51% at n = 2 and 82% at n = 5."""
    rng = np.random.default_rng(n)
    logs, truth = rng.normal(-1.5, 0.8, (n, 1500)), -1.5
    low, high = mean_intervals(logs, bounded=False, resamples=1000)
    assert np.mean((low <= truth) & (truth <= high)) >= 0.935
    low, high = bca_intervals(logs, resamples=1000)
    assert np.mean((low <= truth) & (truth <= high)) < 0.925


def test_a_measure_without_bounds_is_not_taken_for_one_that_happens_to_be_within_them() -> None:
    """DCG is from 0 on: values below 1 make it no measure from 0 to 1."""
    values = np.linspace(0.2, 0.9, 8)[:, None]
    student = stats.ttest_1samp(values[:, 0], 0).confidence_interval()
    low, high = mean_intervals(np.hstack((values, values)), bounded=[True, False])
    assert (low[0], high[0]) == pytest.approx(exact_interval(values[:, 0]))
    assert (low[1], high[1]) == pytest.approx((student.low, student.high))
    assert np.isnan(mean_intervals(np.ones((20, 1)), bounded=False)).all()
