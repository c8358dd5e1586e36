from __future__ import annotations

import math

import numpy as np
import pytest
from bakeoff.statistics.design import detection_power, queries_needed
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats


@pytest.mark.parametrize(("effect", "power", "n"), [(0.2, 0.8, 199), (0.5, 0.8, 34), (0.8, 0.8, 15), (0.5, 0.95, 54)])
def test_the_published_numbers_of_pairs(effect: float, power: float, n: int) -> None:
    """G*Power's figures for two-sided matched pairs at 5%: Cohen's small, medium and large effect."""
    assert queries_needed(effect, 1.0, power) == n
    assert queries_needed(-effect * 0.1, 0.1, power) == n


def test_power_is_how_often_the_test_finds_it() -> None:
    rng = np.random.default_rng(4)
    found = stats.ttest_1samp(rng.normal(0.6, 1.0, size=(25, 6000)), 0).pvalue <= 0.05
    share = float(np.mean(found))
    assert detection_power(0.6, 25) == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 6000))
    assert detection_power(0.0, 25) == pytest.approx(0.05)
    assert detection_power(-0.6, 25) == detection_power(0.6, 25)
    assert detection_power(40.0, 25) == pytest.approx(1.0)


@given(st.floats(0.03, 3))
def test_the_number_of_queries_is_the_first_that_is_enough(effect: float) -> None:
    n = queries_needed(effect, 1.0)
    assert n is not None
    assert detection_power(effect, n) >= 0.8
    assert n == 2 or detection_power(effect, n - 1) < 0.8


def test_what_no_number_of_queries_can_tell() -> None:
    assert queries_needed(0.0, 1.0) is None
    assert queries_needed(1e-9, 1.0) is None
    assert queries_needed(0.1, 0.0) == 2


def test_numbers_are_doubled_until_ten_million_are_passed() -> None:
    """Beyond 2²³ the next number is 2²⁴, which is more; with so many a t-test is as good as a normal one."""
    quantiles = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert queries_needed(quantiles / math.sqrt(8e6), 1.0) == pytest.approx(8e6, rel=1e-4)
    assert queries_needed(quantiles / math.sqrt(9e6), 1.0) is None


def test_a_single_query_finds_nothing() -> None:
    assert detection_power(9.0, 1) == 0.0
