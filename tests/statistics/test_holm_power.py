"""Power after Holm: what is promised of a pair is found by the test that is used, on data of known truth."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.statistics.compare import outlook
from bakeoff.statistics.holm_power import HolmPower
from bakeoff.statistics.power import queries_needed, smallest_detectable
from bakeoff.statistics.tests import holm_of_pairs, sign_flip_tests
from scipy import stats

GAPS = (0.0, 0.0, 0.0, 0.02, 0.05, 0.1, 0.1, 0.3)
PAIRS = list(combinations(range(len(GAPS)), 2))
TARGET = PAIRS.index((0, 1))


def _scores(rng: np.random.Generator, n: int, gaps: tuple[float, ...] = GAPS) -> Values:
    """Eight contenders on queries that are hard or easy for all; bounded and far from normal, as NDCG is."""
    hardness = 0.6 * rng.beta(1.5, 1.5, size=(n, 1))
    return np.asarray(hardness + 0.4 * rng.beta(0.6, 0.6, size=(n, len(gaps))) - np.array(gaps))


def _share_found(rng: np.random.Generator, n: int, gap: float, sets: int) -> float:
    """How often the sign-flip test and Holm's correction tell the first two apart."""
    gaps = (GAPS[0], gap, *GAPS[2:])
    found = 0
    for seed in range(sets):
        table = _scores(rng, n, gaps)
        adjusted = holm_of_pairs(sign_flip_tests(table, PAIRS, flips=3000, seed=seed), table, PAIRS)
        found += adjusted[TARGET] <= 0.05
    return found / sets


def test_the_promised_difference_is_found_in_four_of_five_data_sets() -> None:
    """The promise is itself an estimate: the median of ten data sets is held to the truth."""
    rng = np.random.default_rng(1)
    promised = float(np.median([HolmPower(_scores(rng, 60), PAIRS).detectable(TARGET) for _ in range(10)]))
    assert 0.75 <= _share_found(rng, 60, promised, 2000) <= 0.85
    alone = HolmPower(_scores(rng, 60)[:, :2], [(0, 1)]).detectable(0)
    assert promised > 1.2 * alone  # what Holm's step costs


def test_so_many_more_queries_find_the_gap_in_four_of_five_data_sets() -> None:
    rng = np.random.default_rng(2)
    gap = 0.08
    gaps = (GAPS[0], gap, *GAPS[2:])
    large = _scores(rng, 20_000, gaps)
    large[:, 1] += (large[:, 0] - large[:, 1]).mean() - gap
    needed = HolmPower(large, PAIRS).queries_needed(TARGET)
    assert needed is not None
    assert 0.75 <= _share_found(rng, needed, gap, 500) <= 0.85


def test_a_single_pair_has_the_formula() -> None:
    rng = np.random.default_rng(3)
    d = rng.normal(0.1, 0.4, size=(50, 1))
    sd, mean = float(d.std(ddof=1)), float(d.mean())
    assert HolmPower(d).detectable(0) == pytest.approx(smallest_detectable(sd, 50))
    assert HolmPower(d).queries_needed(0) == queries_needed(mean, sd)
    # the simulation behind several pairs agrees with the formula where the other pair is always told apart
    both = np.concatenate((d, rng.normal(5, 0.1, size=(50, 1))), axis=1)
    assert HolmPower(both).detectable(0) == pytest.approx(smallest_detectable(sd, 50), rel=0.05)
    # and with half of alpha where the other one never is
    never = np.concatenate((d, rng.normal(0, 1e-3, size=(50, 1)) * np.array([[1], [-1]] * 25)), axis=1)
    never[:, 1] -= never[:, 1].mean()
    assert HolmPower(never).detectable(0) == pytest.approx(smallest_detectable(sd, 50, alpha=0.025), rel=0.05)


def test_what_nothing_can_be_said_of() -> None:
    assert HolmPower(np.random.default_rng(5).normal(1, 1, (9, 2))).power(0, 1.0, 1) == 0
    assert HolmPower(np.zeros((1, 2)), [(0, 1)]).detectable(0) == math.inf
    assert HolmPower(np.zeros((9, 2)), [(0, 1)]).queries_needed(0) is None
    assert outlook({"a": np.ones(5), "b": np.ones(5)}, "a") is None
    assert outlook({"a": np.ones(1), "b": np.zeros(1)}, "a") is None
    assert outlook({}, None) is None


def test_equal_rows_are_one_hypothesis() -> None:
    rng = np.random.default_rng(4)
    a, b, c = (rng.random(40) for _ in range(3))
    alone = outlook({"a": a + 1, "b": b + 0.9, "c": c}, "a")
    twins = outlook({"a": a + 1, "a2": a + 1, "b": b + 0.9, "b2": b + 0.9, "c": c}, "a")
    assert alone is not None
    assert twins is not None
    assert (alone.rival, alone.pairs) == (twins.rival, twins.pairs) == ("b", 3)
    assert twins.detectable == pytest.approx(alone.detectable, rel=0.05)


def test_power_by_simulation_of_two_tests_in_holms_steps() -> None:
    """Two independent differences of known size: whole data sets are drawn, tested and stepped through."""
    rng = np.random.default_rng(6)
    d = rng.normal(size=(4000, 2)) * [1.0, 2.0] + [0.5, 1.0]
    d = (d - d.mean(axis=0)) / d.std(axis=0, ddof=1) * [1.0, 2.0] + [0.5, 1.0]
    n = 30
    sets = rng.normal([0.6, 1.0], [1.0, 2.0], size=(4000, n, 2))
    p = stats.ttest_1samp(sets, 0, axis=1).pvalue
    first, second = p.min(axis=1) <= 0.025, p.max(axis=1) <= 0.05
    smaller = p.argmin(axis=1)
    found = np.where(smaller == 0, first, first & second)
    assert HolmPower(d).power(0, 0.6, n) == pytest.approx(float(found.mean()), abs=0.035)
    assert HolmPower(-d).power(0, 0.6, n) == pytest.approx(float(found.mean()), abs=0.035)
    assert HolmPower(d).power(0, 0.0, n) < 0.03  # on the right side alone


def test_a_sample_of_the_pairs_has_the_steps_of_all() -> None:
    """A hundred pairs of which ten are at hand: the first step is at alpha / 100, the last at alpha."""
    rng = np.random.default_rng(7)
    table = rng.normal(size=(40, 10))
    table = (table - table.mean(axis=0)) / table.std(axis=0, ddof=1)
    alone = HolmPower(table).detectable(0)
    among = HolmPower(table, tested=100).detectable(0)
    assert alone == pytest.approx(smallest_detectable(1.0, 40, alpha=0.05 / 10), rel=0.06)
    assert among == pytest.approx(smallest_detectable(1.0, 40, alpha=0.05 / 100), rel=0.06)


def test_more_queries_are_those_beyond_the_ones_there_are() -> None:
    d = np.random.default_rng(8).normal(size=(50, 1))
    d = (d - d.mean()) / d.std(ddof=1)
    assert HolmPower(d + 0.2).more_queries(0) == 199 - 50  # G*Power's figure for an effect of 0.2
    assert HolmPower(d + 0.8).more_queries(0) == 0
    assert HolmPower(d).more_queries(0) is None
    assert HolmPower(d + 0.2).queries_needed(0, power=0.5) == queries_needed(0.2, 1.0, 0.5)


def test_so_many_pairs_need_as_many_queries_as_their_share_of_alpha() -> None:
    """Of two differences the other is 0: the first must pass alpha / 2."""
    d = np.random.default_rng(9).normal(size=(60, 2))
    d = (d - d.mean(axis=0)) / d.std(axis=0, ddof=1) + [0.3, 0.0]
    needed, expected = HolmPower(d).queries_needed(0), queries_needed(0.3, 1.0, alpha=0.025)
    assert needed is not None
    assert expected is not None
    assert needed == pytest.approx(expected, rel=0.06)
    assert HolmPower(d).queries_needed(1) is None
    same = np.tile([0.3, 0.1], (5, 1))
    assert HolmPower(same).queries_needed(0) is None  # without any spread nothing is estimated
    assert HolmPower(same).detectable(0) == math.inf


def test_two_queries_are_enough_where_differences_are_huge() -> None:
    """Of two queries Student's bar at alpha / 2 is 25.5; a mean of 1 with a deviation of 0.001 is at 1,400."""
    d = np.random.default_rng(10).normal(size=(30, 2))
    d = (d - d.mean(axis=0)) / d.std(axis=0, ddof=1) * 0.001 + 1.0
    assert HolmPower(d).power(0, 1.0, 2) > 0.9
    assert HolmPower(d).queries_needed(0) == 2


@pytest.mark.parametrize("seed", range(4))
def test_the_smallest_difference_is_found_to_a_small_part_of_its_error(seed: int) -> None:
    """It has the power that is wanted, and what is less by one in 8,192 of the mean's standard error has not."""
    table, pairs = _scores(np.random.default_rng(seed), 40, GAPS[:3]), list(combinations(range(3), 2))
    power = HolmPower(table, pairs)
    for target, (a, b) in enumerate(pairs):
        found, error = power.detectable(target), stats.sem(table[:, a] - table[:, b])
        assert power.power(target, found, 40) >= 0.8
        assert power.power(target, found - error / 8192, 40) < 0.8


def test_a_deviation_spreads_as_chi_squared_does() -> None:
    power = HolmPower(np.random.default_rng(11).normal(size=(30, 2)))
    chances = stats.norm.cdf(power._normal[1])
    assert power._spread_of_sd(101) == pytest.approx(np.sqrt(stats.chi2.ppf(chances, 100) / 100), abs=0.002)


def test_two_queries_have_one_degree_of_freedom() -> None:
    """Ten standard deviations, three pairs: t's bar with one degree is 38 in Holm's first step and 12.7 in its last.

    The deviation of two values is |Z| standard deviations, so t passes the bars in 29 to 73% of cases; with three
    degrees, bars of 5.4 and less, it would in 99%.
    """
    table = np.random.default_rng(0).normal(0, 1, (40, 3))
    power = HolmPower(table)
    assert 0.25 < power.power(0, 10 * math.sqrt(2), 2) < 0.8


def test_two_queries_say_how_many_are_needed() -> None:
    assert HolmPower(np.array([[0.0, 0.3, 0.9], [0.1, 0.2, 0.7]])).queries_needed(0) is not None
