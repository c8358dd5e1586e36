"""Extrapolation in the size of the corpus, on simulated corpora whose true curve is known."""

from __future__ import annotations

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.extensions.corpus_size.growth import extrapolate
from scipy import stats
from simulate.corpora import scores

SIZES = (3_000, 10_000, 30_000, 100_000)


@pytest.mark.parametrize("powers", [(-8, -3), (-6, -3), (-7, -4)], ids=str)
@pytest.mark.parametrize("target", [1_000_000, 10_000_000])
def test_the_interval_holds_the_truth_at_ten_and_a_hundred_times_the_documents(
    target: int, powers: tuple[int, int]
) -> None:
    """Three known curves: one that falls slowly, one that ends near 0, one that is only beginning to fall."""
    truth = float(scores(np.random.default_rng(0), 100_000, (target,), powers).mean())
    held = 0
    for seed in range(100):
        estimate = extrapolate(scores(np.random.default_rng(seed + 1), 300, SIZES, powers), SIZES, target)
        assert estimate is not None
        held += estimate.low <= truth <= estimate.high
    assert held >= 90  # 95% is promised


def test_a_curve_that_is_flat_stays_flat() -> None:
    rng = np.random.default_rng(3)
    estimate = extrapolate(np.tile(rng.uniform(0, 1, 200), (4, 1)), SIZES, 10**7)
    assert estimate is not None
    assert estimate.high - estimate.low < 0.1
    assert estimate.low < estimate.mean < estimate.high


def test_two_sizes_or_a_mean_of_one_say_nothing() -> None:
    assert extrapolate(np.full((2, 30), 0.5), (10, 100), 1000) is None
    assert extrapolate(np.ones((3, 30)), (10, 100, 1000), 10_000) is None


def _by_scipy(x: Values, y: Values, target: float, level: float) -> tuple[float, float]:
    """The line's height at the target, and half of the prediction interval of one more point, from the textbook."""
    line = stats.linregress(x, y)
    residuals = y - (line.intercept + line.slope * x)
    s = np.sqrt((residuals**2).sum() / (len(x) - 2))
    lever = 1 + 1 / len(x) + (target - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum()
    return line.intercept + line.slope * target, stats.t.ppf((1 + level) / 2, len(x) - 2) * s * np.sqrt(lever)


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_where_all_queries_move_alike_the_interval_is_that_of_a_line(level: float) -> None:
    """Two queries that always score the same: which is asked makes no difference, so only the line is unsure."""
    means = np.array([0.7, 0.66, 0.55, 0.53])
    x = np.log10(SIZES)
    found = extrapolate(np.stack((means, means), axis=1), SIZES, 1_000_000, level=level)
    assert found is not None
    middle, half = _by_scipy(x, means, 6.0, level)
    bent, of_bent = _by_scipy(x, np.log(means / (1 - means)), 6.0, level)
    ends = [middle - half, middle + half, *(1 / (1 + np.exp(-(bent + sign * of_bent))) for sign in (-1, 1))]
    assert found.mean == pytest.approx((middle + 1 / (1 + np.exp(-bent))) / 2)
    assert (found.low, found.high) == pytest.approx((max(min(ends), 0), min(max(ends), 1)))
    assert found.documents == 1_000_000


def test_where_the_means_are_on_a_line_the_interval_is_that_of_the_queries() -> None:
    """At the middle of the sizes the line is as high as the mean of all scores, and as unsure as the queries' means."""
    rng = np.random.default_rng(4)
    moves = rng.normal(0, 0.1, 50)
    moves -= moves.mean()
    table = np.array([0.5, 0.5, 0.5])[:, None] + moves
    found = extrapolate(table, (100, 1000, 10_000), 1000)
    assert found is not None
    half = stats.norm.ppf(0.975) * moves.std(ddof=1) / np.sqrt(50)
    assert found.mean == pytest.approx(0.5)
    assert found.high - found.low == pytest.approx(2 * half, rel=0.01)
    far = extrapolate(table * [[1.0], [1.0], [1.0]], (100, 1000, 10_000), 10**9)
    assert far is not None
    assert far.high - far.low == pytest.approx(2 * half, rel=0.01)  # all sizes move together: no slope, no more doubt


def test_queries_that_fall_and_rise_make_what_is_far_away_unsure() -> None:
    """Means of 0.5 at every size; each query's own line, drawn on to a million documents, says how they spread."""
    rng = np.random.default_rng(5)
    moves = rng.normal(0, 0.05, (3, 60))
    moves -= moves.mean(axis=1, keepdims=True)
    found = extrapolate(0.5 + moves, (100, 1000, 10_000), 1_000_000)
    assert found is not None
    ahead = np.polyval(np.polyfit([2.0, 3.0, 4.0], moves, 1), 6.0)
    half = stats.norm.ppf(0.975) * ahead.std(ddof=1) / np.sqrt(60)
    assert (found.low, found.high) == pytest.approx((0.5 - half, 0.5 + half), rel=1e-9)


def test_one_query_says_nothing_and_a_mean_of_zero_neither() -> None:
    assert extrapolate(np.full((3, 1), 0.5), (10, 100, 1000), 10_000) is None
    assert extrapolate(np.zeros((3, 30)), (10, 100, 1000), 10_000) is None
    assert extrapolate(np.tile([0.4, 0.6], (3, 1)), (10, 100, 1000), 10_000) is not None
