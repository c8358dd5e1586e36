"""How many queries to label: simulated collections have the power and the width that were planned."""

from __future__ import annotations

import numpy as np
import pytest
from bakeoff.statistics.design import (
    expected_width,
    queries_for_anova,
    queries_for_width,
    residual_variance,
)
from bakeoff.statistics.guarded import guard_differences
from scipy import stats


def test_the_residual_variance_by_hand() -> None:
    """Rows 0 1 / 1 0 around a mean of 0.5 leave ± 0.5 in every cell: 4 × 0.25 over one degree of freedom."""
    table = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert residual_variance([table]) == pytest.approx(1.0)
    # A collection whose rows and columns explain everything adds freedom and no squares.
    assert residual_variance([table, np.array([[0.1, 0.2], [0.3, 0.4]])]) == pytest.approx(0.5)
    assert np.isnan(residual_variance([np.ones((1, 3))]))


def test_the_residual_variance_is_that_of_a_two_way_table() -> None:
    """5 queries × 3 contenders: a least-squares fit of both effects leaves 15 − 7 degrees of freedom."""
    table = np.random.default_rng(1).random((5, 3))
    rows, columns = np.repeat(np.eye(5), 3, axis=0), np.tile(np.eye(3), (5, 1))
    design = np.hstack((rows, columns))
    effects, _, rank, _ = np.linalg.lstsq(design, table.ravel(), rcond=None)
    assert rank == 7
    assert residual_variance([table]) == pytest.approx(float(((table.ravel() - design @ effects) ** 2).sum()) / 8)
    assert np.isnan(residual_variance([np.ones((3, 1))]))
    assert residual_variance([table, np.ones((1, 3)), np.ones((3, 1))]) == residual_variance([table])


def test_what_is_taken_where_nothing_is_said() -> None:
    """A power of four in five, five per cent."""
    # Cohen's f of 0.25 in three groups: 159 in all by G*Power
    assert queries_for_anova(0.25 * np.sqrt(6), 1.0, 3) == 53
    freedom = 9
    width = 2 * stats.t.ppf(0.975, freedom) * stats.chi(freedom).mean() / np.sqrt(freedom) / np.sqrt(10)
    assert expected_width(10, 1.0) == pytest.approx(width)


def test_the_residual_variance_is_found_under_effects_of_queries_and_contenders() -> None:
    rng = np.random.default_rng(2)
    table = rng.normal(0, 0.2, (400, 6)) + rng.normal(0, 0.5, (400, 1)) + rng.normal(0, 0.3, (1, 6))
    assert residual_variance([table]) == pytest.approx(0.04, rel=0.1)


def test_the_planned_number_of_queries_has_the_planned_width() -> None:
    n = queries_for_width(0.1, 0.02)
    assert n is not None
    rng = np.random.default_rng(5)
    for queries in (n, n - 1):
        d = rng.normal(0, np.sqrt(0.04), (4000, queries))
        widths = 2 * stats.t.ppf(0.975, queries - 1) * d.std(axis=1, ddof=1) / np.sqrt(queries)
        assert widths.mean() == pytest.approx(expected_width(queries, np.sqrt(0.04)), rel=0.01)
    assert expected_width(n, np.sqrt(0.04)) <= 0.1 < expected_width(n - 1, np.sqrt(0.04))


def test_the_f_tests_number_of_queries_has_the_planned_power() -> None:
    """Five contenders, the best and the worst 0.1 apart, the others halfway."""
    n = queries_for_anova(0.1, 0.05, 5)
    assert n is not None
    rng = np.random.default_rng(6)
    shifts = np.array([0.05, 0.0, 0.0, 0.0, -0.05])
    groups = rng.normal(shifts[:, None, None], np.sqrt(0.05), (5, 3000, n))
    assert np.mean(stats.f_oneway(*groups, axis=1).pvalue <= 0.05) == pytest.approx(0.8, abs=0.025)


def test_what_no_number_of_queries_finds() -> None:
    assert queries_for_width(1e-9, 0.02) is None


def test_the_width_that_is_planned_is_that_of_the_guarded_interval() -> None:
    """Of differences around 0 with an imagined failure at each end: 200 samples of the planned size."""
    sd, failure = 0.2, 0.7
    n = queries_for_width(0.1, sd**2 / 2, failure) or 0
    rng = np.random.default_rng(1)
    scores = np.full((n, 200), failure)
    table = np.hstack((scores + rng.normal(0, sd, (n, 200)), scores))
    found = guard_differences(table, [(at, 200 + at) for at in range(200)])
    plain = queries_for_width(0.1, sd**2 / 2) or 0
    assert plain < n
    assert np.mean(found.high - found.low) <= 0.101
