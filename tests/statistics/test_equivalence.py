"""Equivalence, against scipy, by hand, and on data whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from bakeoff.statistics.compare import equivalence_tests, relation
from bakeoff.statistics.guarded import equivalence_p
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30), st.floats(0.001, 0.5))
def test_without_bounds_it_is_two_one_sided_t_tests(values: list[float], margin: float) -> None:
    d = np.array(values)
    assume(np.ptp(d) > 1e-6)
    above = stats.ttest_1samp(d, -margin, alternative="greater").pvalue
    below = stats.ttest_1samp(d, margin, alternative="less").pvalue
    assert equivalence_tests([d], margin, worst=None)[0] == pytest.approx(max(above, below), abs=1e-9)


def test_queries_that_say_nothing_of_equivalence() -> None:
    """One query, a difference on the margin, and values without bounds or spread, of which a loss may have any size."""
    assert equivalence_tests([np.zeros(1)], 0.01)[0] > 0.05
    assert equivalence_tests([np.full(5, 0.3)], 0.01)[0] > 0.5
    assert equivalence_tests([np.full(500, 0.01)], 0.01)[0] >= 0.5
    assert equivalence_tests([np.zeros(500)], 0.01, worst=None)[0] == 1


def test_a_loss_that_is_rare_is_not_equivalence() -> None:
    """One query in twenty loses 1, so the mean is on the margin: 40 queries show no loss at all in 13% of cases."""
    rng = np.random.default_rng(5)
    sets = (rng.random((400, 40)) < 0.05).astype(float)
    assert np.mean(~sets.any(axis=1)) > 0.1
    assert np.mean([equivalence_p(d, 0.05) <= 0.05 for d in sets]) <= 0.05


def test_holm_is_over_the_pairs() -> None:
    rng = np.random.default_rng(1)
    pairs = [rng.normal(0, 0.05, 40), rng.normal(0, 0.05, 40)]
    alone = sorted(equivalence_p(d, 0.2) for d in pairs)
    twice = equivalence_tests([*pairs, -pairs[0]], 0.2)  # as of two stores that answer alike
    assert sorted(twice[:2]) == pytest.approx(sorted(equivalence_tests(pairs, 0.2)))
    assert twice[2] == twice[0]
    assert sorted(equivalence_tests(pairs, 0.2)) == pytest.approx([min(2 * alone[0], 1), max(2 * alone[0], alone[1])])


def test_the_words() -> None:
    assert relation(0.1, 0.001, 0.9) == "better"
    assert relation(-0.1, 0.001, None) == "worse"
    assert relation(0.01, 0.001, 0.01) == "equivalent"  # a difference that is shown, and shown to be small
    assert relation(0.01, 0.5, 0.5) == "undecided"
    assert relation(0.01, 0.05, 0.9) == "better"  # five per cent is enough for either
    assert relation(0.01, 0.9, 0.05) == "equivalent"
    assert relation(0.01, 0.051, 0.051) == "undecided"
