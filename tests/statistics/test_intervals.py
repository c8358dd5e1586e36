"""BCa intervals of means and of statistics of sums: scipy's, and which way a skew moves them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.statistics.intervals import bca_intervals, bca_of_sums, resamples_of
from scipy import stats

from tests.statistics.one_column import bca_of_mean


def _ratio(sums: Values) -> Values:
    """Of two column sums; not defined where the second is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Values = np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.nan)
    return ratio


def _plain(values: Values, level: float = 0.95) -> tuple[float, float]:
    """The percentile interval, without any correction."""
    means = np.random.default_rng(1).choice(values, size=(40_000, len(values))).mean(axis=1)
    return float(np.quantile(means, (1 - level) / 2)), float(np.quantile(means, (1 + level) / 2))


def test_a_long_tail_pulls_both_ends_of_the_interval_its_way() -> None:
    """The sign of the acceleration: with the other one both ends would move away from the tail."""
    tail_above = np.random.default_rng(2).exponential(size=30)
    low, high = bca_of_mean(tail_above, resamples=40_000)
    plain = _plain(tail_above)
    step = 0.02 * (plain[1] - plain[0])
    assert low > plain[0] + step
    assert high > plain[1] + step
    assert bca_of_mean(-tail_above, resamples=40_000) == pytest.approx((-high, -low), abs=step)


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_of_sums_it_is_scipys(level: float) -> None:
    rng = np.random.default_rng(3)
    parts = np.stack((rng.exponential(size=25), rng.uniform(0.5, 1.5, size=25)), axis=1)
    expected = stats.bootstrap(
        (parts[:, 0], parts[:, 1]), lambda a, b, axis=-1: a.sum(axis=axis) / b.sum(axis=axis), paired=True,
        confidence_level=level, n_resamples=20_000, method="BCa", rng=np.random.default_rng(4),
    ).confidence_interval  # fmt: skip
    value, low, high = bca_of_sums(parts, _ratio, level=level, resamples=20_000)
    assert value == pytest.approx(parts[:, 0].sum() / parts[:, 1].sum())
    tolerance = 0.025 * (expected.high - expected.low)
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=tolerance)


def test_of_sums_the_mean_has_the_interval_of_a_mean() -> None:
    values = np.random.default_rng(5).beta(0.4, 3, size=40)
    parts = np.stack((values, np.ones(40)), axis=1)
    assert bca_of_sums(parts, _ratio)[1:] == pytest.approx(bca_of_mean(values), abs=1e-9)


def test_of_sums_what_is_not_defined_has_no_interval() -> None:
    assert bca_of_sums(np.array([[2.0, 4.0]]), _ratio)[0] == 0.5
    assert all(math.isnan(end) for end in bca_of_sums(np.array([[2.0, 4.0]]), _ratio)[1:])
    assert all(math.isnan(end) for end in bca_of_sums(np.zeros((3, 2)), _ratio))
    same = bca_of_sums(np.array([[1.0, 2.0]] * 6), _ratio)
    assert same == (0.5, 0.5, 0.5)
    # one row in which the ratio is defined: wherever it is drawn the value is the same, elsewhere there is none
    assert bca_of_sums(np.array([[1.0, 4.0], [0.0, 0.0], [0.0, 0.0]]), _ratio) == (0.25, 0.25, 0.25)


def test_of_two_rows_there_is_an_interval() -> None:
    _, low, high = bca_of_sums(np.array([[0.0, 1.0], [1.0, 1.0]]), _ratio)
    assert (low, high) == (0.0, 1.0)
    assert bca_of_mean([0.0, 1.0]) == (0.0, 1.0)


@pytest.mark.parametrize(("n", "resamples"), [(1, 3), (7, 2500), (300_000, 3)])
def test_every_resample_draws_as_many_as_there_are(n: int, resamples: int) -> None:
    blocks = list(resamples_of(n, resamples, seed=6))
    assert sum(map(len, blocks)) == resamples
    assert all((block.sum(axis=1) == n).all() for block in blocks)
    again = np.concatenate(list(resamples_of(n, resamples, seed=6)))
    assert np.array_equal(again, np.concatenate(blocks))
    if n == 7:  # each of the seven is drawn as often as any other
        assert np.concatenate(blocks).mean(axis=0) == pytest.approx(np.ones(7), abs=0.1)


def test_what_is_drawn_without_a_seed_is_drawn_with_42() -> None:
    """The default that results are repeated with."""
    table = np.random.default_rng(0).random((30, 2))
    for drawn, again in zip(bca_intervals(table), bca_intervals(table, seed=42), strict=True):
        assert drawn.tolist() == again.tolist()
    assert bca_intervals(table, seed=43)[0].tolist() != bca_intervals(table)[0].tolist()


def test_the_interval_of_a_small_figure_is_corrected_for_skew_too() -> None:
    """A millionth of a ratio has a millionth of its interval."""
    values = np.random.default_rng(8).exponential(size=30)
    parts = np.stack((values, np.ones(30)), axis=1)
    small = bca_of_sums(parts, lambda sums: _ratio(sums) * 1e-6)
    assert np.array(small) * 1e6 == pytest.approx(bca_of_sums(parts, _ratio), rel=1e-3)
