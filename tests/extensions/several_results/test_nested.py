"""Differences over several tasks, by hand and on data whose truth is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.extensions.several_results.nested import estimate_nested
from bakeoff.statistics.tests import sign_flip_test
from scipy import stats


def test_every_task_counts_alike() -> None:
    """Task means 0.1 and 0.3 give 0.2, though one task has ten times as many queries."""
    one = estimate_nested([np.full(40, 0.1), np.full(4, 0.3)])
    assert one.difference == pytest.approx(0.2)
    assert one.p_tasks == one.least == 0.5  # of four patterns of signs, two are as extreme


def test_the_interval_is_that_of_a_stratified_mean() -> None:
    """The error of the mean of two independent means: half the root of the sum of their squared errors."""
    rng = np.random.default_rng(1)
    tasks = [rng.normal(0, 0.2, 300), rng.normal(0, 0.4, 100)]
    error = 0.5 * np.sqrt(sum(d.var() / len(d) for d in tasks))
    one = estimate_nested(tasks)
    assert one.low is not None
    assert one.high is not None
    assert one.high - one.low == pytest.approx(2 * 1.96 * error, rel=0.05)


def test_tasks_that_pull_either_way_are_no_evidence_for_other_tasks() -> None:
    """Eight tasks whose true differences vary around 0: tested by task, 5% at most are false; queries pooled, most."""
    rng = np.random.default_rng(2)
    by_task, pooled = [], []
    for _ in range(400):
        tasks = [rng.normal(rng.normal(0, 0.1), 0.1, 30) for _ in range(8)]
        by_task.append(sign_flip_test([d.mean() for d in tasks]) <= 0.05)
        pooled.append(sign_flip_test(np.concatenate(tasks), flips=400) <= 0.05)
    assert np.mean(by_task) < 0.08
    assert np.mean(pooled) > 0.5
    tasks = [rng.normal(0, 0.1, 30) for _ in range(8)]
    assert estimate_nested(tasks).p_tasks == sign_flip_test([d.mean() for d in tasks])


def test_without_a_difference_these_tasks_show_one_in_five_of_a_hundred_cases() -> None:
    rng = np.random.default_rng(3)
    sizes = (12, 40, 25)
    false = [
        estimate_nested([rng.normal(0, 0.2, n) for n in sizes], bounded=False, resamples=20, seed=at).p <= 0.05
        for at in range(400)
    ]
    assert 0.02 <= np.mean(false) <= 0.085  # 400 cases at 5%: outside of this in about 1 of 500


def test_p_is_of_queries_weighted_so_that_tasks_count_alike() -> None:
    """Two queries of 0.4 and one of 0.2: as 0.2, 0.2 and 0.2, all alike, of eight patterns two are as extreme."""
    one = estimate_nested([np.array([0.4, 0.4]), np.array([0.2])])
    assert one.p == pytest.approx(2 / 8)
    assert one.least == 0.5
    assert estimate_nested([np.array([0.1])] * 5).least == 2 / 2**5


def test_the_interval_is_at_the_level_that_is_asked_for() -> None:
    tasks = [np.random.default_rng(4).normal(0.1, 0.2, 200), np.random.default_rng(5).normal(0.3, 0.2, 200)]
    error = 0.5 * np.sqrt(sum(d.var() / len(d) for d in tasks))
    half = estimate_nested(tasks, level=0.5)
    assert half.low is not None
    assert half.high is not None
    assert half.high - half.low == pytest.approx(2 * 0.6745 * error, rel=0.05)
    assert (half.high + half.low) / 2 == pytest.approx(half.difference, abs=0.1 * error)


def _covered(draw: Callable[[int], Values], truth: float, sizes: tuple[int, ...], runs: int = 300) -> float:
    """How often the interval holds the mean of the tasks' true means, which are all this one."""
    ends = [estimate_nested([draw(n) for n in sizes], resamples=300, seed=at) for at in range(runs)]
    return float(np.mean([one.low is not None and one.low <= truth <= (one.high or 0.0) for one in ends]))


@pytest.mark.parametrize("sizes", [(5, 5), (8, 8), (20, 20), (5, 40)])
def test_the_interval_of_few_queries_holds(sizes: tuple[int, ...]) -> None:
    """The percentiles of the bootstrap alone hold it in 86, 88 and 91% of cases; 300 of 95% are 92% or more."""
    rng = np.random.default_rng(sum(sizes))
    assert _covered(lambda n: rng.normal(0.05, 0.2, n), 0.05, sizes) >= 0.92
    assert _covered(lambda n: np.where(rng.random(n) < 0.7, 0, rng.normal(0.1, 0.25, n)), 0.03, sizes) >= 0.92


def test_tasks_without_a_spread_have_the_exact_interval() -> None:
    """One task alone: a loss of 1 that n queries do not meet with 2.5%. Two: less than the worst of both."""
    alone = estimate_nested([np.zeros(20)])
    bound = 1 - 0.025 ** (1 / 20)
    assert (alone.low, alone.high) == pytest.approx((-bound, bound), abs=0.01)
    both = estimate_nested([np.zeros(20), np.zeros(20)])
    # The mean of two such losses, each with density 20(1 − x)^19, drawn apart.
    u = 1 - np.random.default_rng(1).random((200_000, 2)) ** (1 / 20)
    assert both.high == pytest.approx(float(np.quantile(u.mean(axis=1), 0.975)), abs=0.01)
    assert both.low == pytest.approx(-float(np.quantile(u.mean(axis=1), 0.975)), abs=0.01)


def test_a_task_without_a_spread_widens_the_interval_of_the_others() -> None:
    """A rare loss of 1 in one of two tasks, which 20 queries mostly do not meet, and a task that varies."""
    rng = np.random.default_rng(6)
    varied, rare = rng.normal(0.1, 0.2, 20), np.zeros(20)
    one, alone = estimate_nested([varied, rare]), estimate_nested([varied], bounded=False)
    assert one.low is not None
    assert one.high is not None
    assert one.low <= (alone.low or 0) / 2 - (1 - 0.025 ** (1 / 20)) / 2 + 0.01
    assert one.high >= (alone.high or 0) / 2 + (1 - 0.025 ** (1 / 20)) / 2 - 0.01


def test_an_imagined_failure_widens_the_interval_of_a_jitter() -> None:
    """Twenty losses of about 0.01: Student's with one failure more, which costs 1, by scipy."""
    d = np.random.default_rng(7).uniform(-0.02, 0.0, 20)
    found = estimate_nested([d])
    below, above = (stats.ttest_1samp(np.append(d, failure), 0) for failure in (-1.0, 1.0))
    assert found.low == pytest.approx(below.confidence_interval().low)
    assert found.high == pytest.approx(above.confidence_interval().high)
    assert found.p > 0.05 > sign_flip_test(d)


def test_where_nothing_is_known_there_is_no_interval() -> None:
    for one in (
        estimate_nested([np.array([0.4, 0.3]), np.array([0.2])]),
        estimate_nested([np.zeros(20)], bounded=False),
        estimate_nested([np.full(20, 1.5)]),
    ):
        assert (one.low, one.high) == (None, None)


def test_the_interval_reaches_as_far_as_the_bootstraps() -> None:
    """Two tasks with 10 of 200 ones: a binomial of 400 ends at 29 ones, Welch at 28.6."""
    task = np.repeat([1.0, 0.0], [10, 190])
    found = estimate_nested([task, task])
    assert found.high == pytest.approx(stats.binom.ppf(0.975, 400, 0.05) / 400)
