"""Equivalence and the chance of winning, against scipy, by hand, and on data whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.statistics.averaging import winning
from bakeoff.statistics.equivalence import equivalence_test, equivalence_tests, relation
from bakeoff.statistics.small_samples import exact_interval, too_few
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats


@given(st.lists(st.floats(-1, 1), min_size=15, max_size=30), st.floats(0.001, 0.5))
def test_it_is_two_one_sided_t_tests(values: list[float], margin: float) -> None:
    d = np.array(values)
    assume(np.ptp(d) > 1e-6 and not too_few(d))
    above = stats.ttest_1samp(d, -margin, alternative="greater").pvalue
    below = stats.ttest_1samp(d, margin, alternative="less").pvalue
    assert equivalence_test(d, margin) == pytest.approx(max(above, below), abs=1e-9)


@pytest.mark.parametrize(("n", "margin"), [(2, 0.01), (3, 0.05), (20, 0.05), (60, 0.05), (300, 0.01)])
def test_no_spread_is_no_proof(n: int, margin: float) -> None:
    """If 1 were lost with a chance of the margin, n queries in a row would show no difference with (1 − margin)ⁿ."""
    assert equivalence_test([0.0] * n, margin) == pytest.approx((1 - margin) ** n, abs=0.015)


def test_queries_that_all_differ_by_more_are_not_equivalent() -> None:
    assert equivalence_test([0.3] * 5, 0.01) == 1
    assert equivalence_test([0.0], 0.01) == 1  # one query says nothing
    assert equivalence_test([0.01] * 5, 0.01) == 1  # on the margin is not within it
    assert equivalence_test([0.0] * 500, 0.01, bounded=False) == 1  # without bounds, a loss may be of any size


def test_a_loss_that_is_rare_is_not_equivalence() -> None:
    """One query in twenty loses 1, so the mean is on the margin: 40 queries show no loss at all in 13% of cases."""
    rng = np.random.default_rng(5)
    sets = (rng.random((400, 40)) < 0.05).astype(float)
    assert np.mean(~sets.any(axis=1)) > 0.1
    assert np.mean([equivalence_test(d, 0.05) <= 0.05 for d in sets]) <= 0.05


def test_of_few_queries_it_is_the_exact_interval() -> None:
    """At the level of its p, the exact interval of the mean just touches the margin."""
    d = np.array([0.02, -0.01, 0.0, 0.05, 0.01, -0.03, 0.0, 0.02])
    p = equivalence_test(d, 0.3)
    low, high = exact_interval(d, (-1.0, 1.0), level=1 - 2 * p)
    assert max(-low, high) == pytest.approx(0.3, abs=0.005)


def test_holm_is_over_the_pairs() -> None:
    rng = np.random.default_rng(1)
    pairs = [rng.normal(0, 0.05, 40), rng.normal(0, 0.05, 40)]
    alone = sorted(equivalence_test(d, 0.02) for d in pairs)
    twice = equivalence_tests([*pairs, -pairs[0]], 0.02)  # as of two stores that answer alike
    assert sorted(twice[:2]) == pytest.approx(sorted(equivalence_tests(pairs, 0.02)))
    assert twice[2] == twice[0]
    assert sorted(equivalence_tests(pairs, 0.02)) == pytest.approx([min(2 * alone[0], 1), max(2 * alone[0], alone[1])])


def test_at_the_margin_equivalence_is_claimed_in_at_most_five_of_a_hundred_cases() -> None:
    """And where the two are truly equal, nearly always with this many queries."""
    rng = np.random.default_rng(7)
    at_the_margin = [equivalence_test(rng.normal(0.02, 0.1, 100), 0.02) <= 0.05 for _ in range(2000)]
    equal = [equivalence_test(rng.normal(0, 0.1, 400), 0.02) <= 0.05 for _ in range(500)]
    assert 0.03 < np.mean(at_the_margin) < 0.07
    assert np.mean(equal) > 0.95


def test_the_words() -> None:
    assert relation(0.1, 0.001, 0.9) == "better"
    assert relation(-0.1, 0.001, None) == "worse"
    assert relation(0.01, 0.001, 0.01) == "equivalent"  # a difference that is shown, and shown to be small
    assert relation(0.01, 0.5, 0.5) == "undecided"
    assert relation(0.01, 0.05, 0.9) == "better"  # five per cent is enough for either
    assert relation(0.01, 0.9, 0.05) == "equivalent"
    assert relation(0.01, 0.051, 0.051) == "undecided"


def test_the_chance_of_winning_is_the_normal_distributions() -> None:
    """Two contenders: P(mean difference > 0) and E[max(0, -difference)] of a normal with this mean and error."""
    rng = np.random.default_rng(3)
    base, d = rng.uniform(0, 1, 400), rng.normal(0, 0.2, 400)
    d += 0.01 - d.mean()
    wins = winning({"a": base + d, "b": base}, resamples=20_000)
    error = d.std() / np.sqrt(len(d))
    assert wins["a"].probability == pytest.approx(stats.norm.cdf(0.01 / error), abs=0.015)
    assert wins["a"].probability + wins["b"].probability == pytest.approx(1)
    regret = error * stats.norm.pdf(0.01 / error) - 0.01 * stats.norm.cdf(-0.01 / error)
    assert wins["a"].regret == pytest.approx(regret, rel=0.1)
    assert wins["b"].regret == pytest.approx(regret + 0.01, rel=0.02)


def test_equals_share_the_win_and_a_hopeless_one_has_none() -> None:
    good = np.linspace(0.5, 0.9, 20)
    scores: dict[str, Values] = {"a": good, "b": good.copy(), "c": good - 0.3}
    wins = winning(scores)
    assert [wins[label].probability for label in "abc"] == pytest.approx([0.5, 0.5, 0])
    assert [wins[label].regret for label in "abc"] == pytest.approx([0, 0, 0.3])
    assert winning({}) == {}
