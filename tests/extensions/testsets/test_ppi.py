"""Corrected means: equal to ppi-python, and intervals that hold where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.extensions.testsets.ppi import Unbounded, correct_mean, mean_estimate
from scipy import stats
from simulate import corrected

from tests.errors import refuses

# What ppi-python 0.2.3 gives for the data below: ppi_mean_pointestimate and ppi_mean_ci(alpha=0.05), with the weight
# that it chooses and with lam=0.5. It uses the normal distribution's quantile where we use Student's.
PPI_PYTHON = {
    (30, 200): ((0.51292926, 0.4604398, 0.56541872), (0.49868833, 0.44024576, 0.55713091)),
    (60, 90): ((0.49707638, 0.45911192, 0.53504083), (0.49544167, 0.45641727, 0.53446606)),
}


def _data(rng: np.random.Generator, n: int, other: int) -> tuple[Values, Values, Values]:
    quality = rng.beta(2, 2, n + other)
    people = np.clip(quality + rng.normal(0, 0.1, n + other), 0, 1).round(3)
    model = np.clip(quality + 0.15 + rng.normal(0, 0.1, n + other), 0, 1).round(3)
    return people[:n], model[:n], model[n:]


def test_it_is_ppi_pythons() -> None:
    rng = np.random.default_rng(11)
    for (n, other), cases in PPI_PYTHON.items():
        data = _data(rng, n, other)
        for weight, (value, low, high) in zip((None, 0.5), cases, strict=True):
            ours = correct_mean(*data, Unbounded(), weight=weight)
            wider = stats.t.ppf(0.975, n - 1) / stats.norm.ppf(0.975)
            assert ours.value == pytest.approx(value, abs=2e-3 if weight is None else 1e-7)
            assert (ours.high - ours.low) / wider == pytest.approx(high - low, rel=0.02)


def _simulated(rng: np.random.Generator, sets: int, n: int, other: int) -> tuple[float, float, float, float]:
    """How often the intervals of people, corrected and model alone hold the true difference, and the widths' ratio.

    Two contenders; a model that overrates, and one of the two more than the other.
    """
    covered, ratio = np.zeros(3), 0.0
    for _ in range(sets):
        shared = rng.normal(0, 0.25, n + other)
        difference = 0.05 + shared
        model = difference + 0.04 + rng.normal(0, 0.15, n + other)
        people = difference + rng.normal(0, 0.05, n + other)
        estimates = (
            mean_estimate(people[:n], Unbounded()),
            correct_mean(people[:n], model[:n], model[n:], Unbounded()),
            mean_estimate(model, Unbounded()),
        )
        covered += [estimate.low <= 0.05 <= estimate.high for estimate in estimates]
        ratio += (estimates[1].high - estimates[1].low) / (estimates[0].high - estimates[0].low)
    by_people, corrected, model_alone = (covered / sets).tolist()
    return by_people, corrected, model_alone, ratio / sets


@pytest.mark.parametrize(("n", "other"), [(20, 280), (50, 250), (100, 900)])
def test_intervals_hold_in_1000_data_sets(n: int, other: int) -> None:
    by_people, corrected, model_alone, ratio = _simulated(np.random.default_rng(n), 1000, n, other)
    assert 0.93 <= by_people <= 0.97
    assert 0.93 <= corrected <= 0.97
    assert model_alone < 0.8  # the reason for all this
    assert ratio < 0.85  # and what is gained


def test_a_model_that_says_nothing_counts_for_nothing() -> None:
    people = np.linspace(0, 1, 40)
    flat = correct_mean(people, np.full(40, 0.7), np.full(200, 0.7), Unbounded())
    alone = mean_estimate(people, Unbounded())
    assert (flat.value, flat.low, flat.high) == pytest.approx((alone.value, alone.low, alone.high))
    assert flat.weight == 0
    against = correct_mean(people, 1 - people, np.tile(1 - people, 5), Unbounded())
    assert against.weight == 0


def test_too_few_queries_are_refused() -> None:
    with refuses(ValueError, "19", "20"):
        correct_mean(np.zeros(19), np.zeros(19), np.zeros(100), Unbounded())


def test_the_weight_and_the_interval_by_hand() -> None:
    """PPI++: weight = cov(people, model) / ((1 + n / N) · var(model over all)); both samples have Student's ends."""
    rng = np.random.default_rng(12)
    people, there, elsewhere = _data(rng, 25, 75)
    found = correct_mean(people, there, elsewhere, Unbounded(), level=0.9)
    weight = np.cov(people, there)[0, 1] / ((1 + 25 / 75) * np.var(np.concatenate((there, elsewhere))))
    assert found.weight == pytest.approx(weight)
    value = people.mean() + weight * (elsewhere.mean() - there.mean())
    assert found.value == pytest.approx(value)
    there_half = stats.t.ppf(0.95, 24) * stats.sem(people - weight * there)
    half = np.hypot(weight * stats.t.ppf(0.95, 74) * stats.sem(elsewhere), there_half)
    assert (found.low, found.high) == pytest.approx((value - half, value + half))


def test_the_weight_is_never_more_than_one() -> None:
    people = np.linspace(0, 1, 20)
    assert correct_mean(people, people / 10, np.tile(people / 10, 50), Unbounded()).weight == 1
    single = correct_mean(people, people, people[:1], Unbounded())
    alone = mean_estimate(people, Unbounded())
    assert (single.value, single.low, single.weight) == (alone.value, alone.low, 0)
    assert (alone.low, alone.high) == pytest.approx(stats.t.interval(0.95, 19, people.mean(), stats.sem(people)))


def test_two_queries_elsewhere_are_enough_to_count() -> None:
    """People say 0 ten times and 1 ten times, as the model does; elsewhere it says 0 and 1, so all 22 vary by 1/4."""
    people = np.repeat([0.0, 1.0], 10)
    weight = (20 / 19 / 4) / ((1 + 20 / 2) / 4)
    found = correct_mean(people, people, np.array([0.0, 1.0]), Unbounded())
    assert (found.value, found.weight) == pytest.approx((0.5, weight))
    there = stats.t.ppf(0.975, 19) * (1 - weight) * np.sqrt(1 / 19 / 4)
    assert found.high - 0.5 == pytest.approx(np.hypot(weight * stats.t.ppf(0.975, 1) / 2, there))


@pytest.mark.slow
@pytest.mark.parametrize("world", corrected.graded_worlds(), ids=lambda world: world.name)
def test_intervals_hold_where_few_queries_score_and_whoever_judges(world: corrected.Graded) -> None:
    for line in corrected.held(world, (20,), 200):
        assert not line.missed, line


def test_intervals_hold_where_one_query_in_twenty_scores() -> None:
    """Student's would hold in six of ten."""
    for line in corrected.held(corrected.sparse(0.05, corrected.CAREFUL), (20,), 100):
        assert not line.missed, line
