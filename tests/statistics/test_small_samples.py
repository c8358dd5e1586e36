"""Intervals on data of known truth, where a bootstrap knows too little; the exact one against scipy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.statistics.compare import compare
from bakeoff.statistics.intervals import bca_intervals
from bakeoff.statistics.small_samples import (
    difference_intervals,
    doubt,
    exact_interval,
    mean_intervals,
    too_few,
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
    assert exact_interval(values, bounds) == pytest.approx(expected, abs=0.01 * (bounds[1] - bounds[0]))


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


def test_fifteen_queries_and_ten_unlike_values_are_enough_for_a_bootstrap() -> None:
    assert not too_few(np.arange(15.0))
    assert too_few(np.arange(14.0))
    assert not too_few(np.array([0.0] * 11 + [float(at) for at in range(1, 11)]))
    assert too_few(np.array([0.0] * 11 + [float(at) for at in range(1, 10)]))


def test_ten_values_that_differ_from_the_most_frequent_are_enough() -> None:
    nine, ten = ([0.0] * 30 + [(-1.0) ** at * (1 + at / 10) for at in range(count)] for count in (9, 10))
    assert doubt(np.array(nine)) == (
        "only 9 of 39 queries differ from the most frequent difference: interval and p may be too sure"
    )
    assert doubt(np.array(ten)) == ""
    assert doubt(np.array([0.3, -0.2])) != ""
    assert unlike([]) == 0


@pytest.mark.parametrize(("values", "exact"), [(np.linspace(0, 1, 14), True), (np.linspace(0, 1, 15), False)])
def test_the_exact_interval_is_for_fewer_than_fifteen_queries(values: Values, exact: bool) -> None:
    low, high = mean_intervals(values[:, None])
    bootstrap = bca_intervals(values[:, None])
    assert ((low[0], high[0]) == exact_interval(values)) is exact
    assert ((low[0], high[0]) == (bootstrap[0][0], bootstrap[1][0])) is not exact
    beyond = np.append(values[:9], 1.5)[:, None]  # not from 0 to 1: there is no exact one
    student = stats.ttest_1samp(beyond[:, 0], 0).confidence_interval()
    spanned = min(student.low, bca_intervals(beyond)[0][0]), max(student.high, bca_intervals(beyond)[1][0])
    assert tuple(float(end[0]) for end in mean_intervals(beyond)) == pytest.approx(spanned)
    pair = np.array([[0.2], [0.6]])
    assert (mean_intervals(pair)[0][0], mean_intervals(pair)[1][0]) == exact_interval([0.2, 0.6])


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


@pytest.mark.parametrize("n", [40, 100])
def test_where_most_queries_tie_the_interval_of_a_difference_holds(n: int) -> None:
    """BCa alone covers 85 and 91%."""
    rng = np.random.default_rng(2)
    d = np.where(rng.random((n, 1000)) < 0.7, 0.0, rng.normal(0.1, 0.25, size=(n, 1000)))
    table, pairs = np.concatenate((d, np.zeros((n, 1))), axis=1), [(at, 1000) for at in range(1000)]
    low, high = difference_intervals(table, pairs, resamples=2000)
    assert np.mean((low <= 0.03) & (high >= 0.03)) >= 0.93


@pytest.mark.parametrize("draw", [lambda rng: np.where(rng.random(20) < 0.95, -0.02, 0.38)])
def test_a_skewed_difference_that_is_none_is_doubted(draw: Callable[[np.random.Generator], Values]) -> None:
    """The mean is 0, and more than a third of such data sets are significant: all of them carry the warning."""
    rng = np.random.default_rng(3)
    wrong = [d for d in (draw(rng) for _ in range(300)) if sign_flip_test(d) <= 0.05]
    assert len(wrong) > 0.25 * 300
    assert all(doubt(d) for d in wrong)


def test_what_is_doubted_and_what_is_not() -> None:
    rng = np.random.default_rng(4)
    assert doubt(rng.normal(size=50)) == ""
    assert doubt(np.zeros(30)) == ""
    assert doubt(np.array([0.3])) == ""
    assert doubt(np.array([0.0] * 27 + [0.1, 0.2, 0.3])).startswith("only 3 of 30 queries differ")
    assert "strongly skewed (+" in doubt(np.concatenate((rng.normal(-0.02, 0.001, 29), [0.6])))
    assert unlike([1, 1, 1, 0.5, 0.2]) == 2
    assert compare({"a": [0.1] * 20, "b": [0.2] * 20})[0].doubt.startswith("only 0 of 20")


def test_one_query_has_no_interval_anywhere() -> None:
    assert all(np.isnan(bound).all() for bound in mean_intervals(np.array([[0.5, 1.0]])))


@pytest.mark.parametrize("n", [3, 20, 200])
def test_a_difference_of_nothing_has_the_width_that_its_queries_allow(n: int) -> None:
    """A loss of 1 that n queries do not meet with 2.5%, either way: 1 − 0.025^(1/n)."""
    same = np.random.default_rng(6).random(n)
    low, high = difference_intervals(np.stack([same, same], axis=1), [(0, 1)])
    bound = 1 - 0.025 ** (1 / n)
    assert (low[0], high[0]) == pytest.approx((-bound, bound), abs=0.01)
    unbounded = difference_intervals(np.stack([5 * same, 5 * same], axis=1), [(0, 1)])
    assert np.isnan(unbounded).all()


def test_an_interval_of_no_difference_covers_a_rare_one() -> None:
    """One query in fifty loses 1: most sets of 20 show no loss, and their interval must hold the mean all the same."""
    losses = (np.random.default_rng(7).random((20, 300)) < 0.02).astype(float)
    quiet = losses[:, ~losses.any(axis=0)]
    table = np.concatenate((1 - quiet, np.ones((20, 1))), axis=1)
    low, high = difference_intervals(table, [(at, quiet.shape[1]) for at in range(quiet.shape[1])], resamples=2000)
    assert quiet.shape[1] > 150
    assert ((low <= -0.02) & (high >= -0.02)).all()


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
    assert (low[0], high[0]) == exact_interval(values[:, 0])
    assert (low[1], high[1]) == pytest.approx((student.low, student.high))
    assert np.isnan(mean_intervals(np.ones((20, 1)), bounded=False)).all()
    alike = np.full((20, 2), 0.5)
    assert np.isnan(difference_intervals(alike, [(0, 1)], bounded=False)).all()
    assert np.isfinite(difference_intervals(alike, [(0, 1)])).all()
