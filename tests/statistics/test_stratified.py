"""Means per query asked: worked by hand, against plain formulas, and against traffic whose mean is known."""

from __future__ import annotations

import numpy as np
import pytest
from bakeoff.statistics.stratified import (
    Strata,
    effect_size,
    estimate,
    estimates,
    linearise,
    mean_intervals,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

# The head is one query with half of the traffic; of the tail's four, two are drawn, which have .3 and .2 of it.
HAND = Strata(np.array([0.5, 0.3, 0.2]), ["head", "tail", "tail"], [1, 4, 4])
VALUES = np.array([1.0, 0.0, 1.0])
ERROR = 0.0288**0.5  # tail mean .4, residuals ∓.12: (1 − 2/4) · 2/1 · 2 · .0144


def test_a_mean_and_its_interval_by_hand() -> None:
    found = estimate(VALUES, HAND)
    assert found.mean == pytest.approx(0.7)
    assert (found.low, found.high) == pytest.approx((0.7 - 12.7062047 * ERROR, 0.7 + 12.7062047 * ERROR))
    assert found.p == pytest.approx(2 * stats.t.sf(0.7 / ERROR, 1))
    assert effect_size(VALUES, np.zeros(3), HAND) == pytest.approx(0.7 / 0.21**0.5)  # .5·.09 + .3·.49 + .2·.09


def test_a_single_query_of_a_stratum_gives_no_interval_and_no_verdict() -> None:
    found = estimate(np.array([1.0, 1.0]), Strata(np.array([0.5, 0.5]), ["head", "tail"], [1, 9]))
    assert found.mean == 1.0
    assert np.isnan(found.low)
    assert found.p == 1.0


def test_a_whole_log_has_no_error() -> None:
    strata = Strata(np.array([0.75, 0.25]), ["head", "tail"], [1, 1])
    assert tuple(float(x[0]) for x in estimates(np.array([[1.0], [0.0]]), strata)) == (0.75, 0.75, 0.75, 0.0)


@given(st.lists(st.floats(-1, 1).map(lambda x: round(x, 3)), min_size=6, max_size=6))
def test_one_stratum_of_equal_weights_is_a_t_test(values: list[float]) -> None:
    """Of very many queries, asked equally often, six are drawn: no correction is left, and this is Student's test."""
    d = np.array(values)
    strata = Strata(np.full(6, 1 / 6), ["all"] * 6, [10**12] * 6)
    found = estimate(d, strata)
    if np.ptp(d) > 0:
        expected = stats.ttest_1samp(d, 0.0)
        assert found.p == pytest.approx(expected.pvalue, abs=1e-6)
        assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()), abs=1e-6)
    alike = linearise(d, strata)
    assert alike.mean() == pytest.approx(found.mean, abs=1e-9)
    assert alike.std(ddof=1) == pytest.approx(d.std(ddof=1), abs=1e-6)


def test_linearised_values_carry_mean_and_error() -> None:
    alike = linearise(VALUES, HAND)
    assert alike.mean() == pytest.approx(0.7)
    assert alike.std(ddof=1) / 3**0.5 == pytest.approx(ERROR)


def _drawn(rng: np.random.Generator) -> tuple[Strata, np.ndarray, float]:
    """One sample of head-heavy traffic with its scores and the true mean: frequent queries are answered better."""
    counts = np.ceil(3000 / np.arange(1, 801))
    scores = np.clip(rng.normal(0.2 + 0.15 * np.log10(counts), 0.25), 0, 1)
    band = np.minimum(2, (np.concatenate([[0], np.cumsum(counts)[:-1]]) / counts.sum() * 3).astype(int))
    weights, names, sizes, values = [], [], [], []
    for stratum in range(3):
        of = np.flatnonzero(band == stratum)
        chosen = rng.choice(of, min(len(of), 40), replace=False)
        weights.append(counts[chosen] * counts[of].sum() / counts.sum() / counts[chosen].sum())
        values.append(scores[chosen])
        names += [str(stratum)] * len(chosen)
        sizes += [len(of)] * len(chosen)
    return Strata(np.concatenate(weights), names, sizes), np.concatenate(values), float(counts @ scores / counts.sum())


def test_intervals_cover_the_mean_of_all_traffic() -> None:
    """1,000 logs: 95% are expected to be covered; the plain mean's interval is about another mean."""
    rng, covered, plain, runs = np.random.default_rng(7), 0, 0, 1000
    for _ in range(runs):
        strata, values, truth = _drawn(rng)
        found = estimate(values, strata)
        covered += found.low <= truth <= found.high
        plain += abs(values.mean() - truth) <= 1.96 * values.std(ddof=1) / len(values) ** 0.5
    assert 0.93 <= covered / runs <= 0.97
    assert plain / runs < 0.8


def test_a_stratum_that_is_whole_hides_none_after_it() -> None:
    """The same tail as by hand, behind a head that adds no error, and before one whose error nobody knows."""
    behind = Strata(HAND.weights[[1, 2, 0]], ["tail", "tail", "head"], [4, 4, 1])
    assert estimate(VALUES[[1, 2, 0]], behind).low == pytest.approx(estimate(VALUES, HAND).low)
    unknown = Strata(np.array([0.1, 0.4, 0.3, 0.2]), ["one", "head", "tail", "tail"], [9, 1, 4, 4])
    found = estimate(np.array([1.0, 1.0, 0.0, 1.0]), unknown)
    assert np.isnan(found.low)
    assert found.p == 1.0
    assert np.isnan(linearise(np.array([1.0, 1.0, 0.0, 1.0]), unknown)[0])
    assert np.isfinite(linearise(np.array([1.0, 1.0, 0.0, 1.0]), unknown)[1:]).all()


def test_two_strata_have_the_freedom_of_both() -> None:
    """Five of fifty and three of thirty, drawn with equal weights: errors add by squares, 4 + 2 degrees of freedom."""
    values = np.random.default_rng(3).random(8)
    strata = Strata(np.array([0.12] * 5 + [0.4 / 3] * 3), ["a"] * 5 + ["b"] * 3, [50] * 5 + [30] * 3)
    found = estimate(values, strata, alpha=0.1)
    mean = 0.6 * values[:5].mean() + 0.4 * values[5:].mean()
    error = np.sqrt(0.9 * (0.36 * values[:5].var(ddof=1) / 5 + 0.16 * values[5:].var(ddof=1) / 3))
    assert found.mean == pytest.approx(mean)
    assert found.high - found.low == pytest.approx(2 * stats.t.ppf(0.95, 6) * error)
    assert found.p == pytest.approx(2 * stats.t.sf(mean / error, 6))


def test_where_nothing_varies() -> None:
    strata = Strata(np.full(3, 1 / 3), ["all"] * 3, [9] * 3)
    zero, same = np.zeros(3), np.full(3, 0.2)
    assert (estimate(zero, strata).p, estimate(same, strata).p) == (1.0, 2 / 2**3)  # three signs that are alike
    assert effect_size(same, zero, strata) == np.inf
    assert effect_size(zero, same, strata) == -np.inf
    assert effect_size(same, same, strata) == 0.0
    whole = Strata(np.full(3, 1 / 3), ["all"] * 3, [3] * 3)
    assert (estimate(zero, whole).p, estimate(same, whole).p) == (1.0, 0.0)


def test_columns_are_estimated_one_by_one() -> None:
    table = np.random.default_rng(4).random((6, 3))
    strata = Strata(np.full(6, 1 / 6), ["all"] * 6, [60] * 6)
    columns = estimates(table, strata)
    for at in range(3):
        alone = estimate(table[:, at], strata)
        assert [float(column[at]) for column in columns] == pytest.approx([alone.mean, alone.low, alone.high, alone.p])


def _one_stratum(n: int, of: int) -> Strata:
    return Strata(np.full(n, 1 / n), ["all"] * n, [of] * n)


def test_twenty_drawn_queries_that_all_score_one_leave_others_open() -> None:
    """Clopper and Pearson's: 20 of 20 show a rate of 0.025^(1/20) or more, and no score is above 1."""
    low, high = mean_intervals(np.ones((20, 1)), _one_stratum(20, 1000))
    assert (low[0], high[0]) == (pytest.approx(0.025 ** (1 / 20), abs=0.01), 1.0)
    low, high = mean_intervals(np.array([[1.0]] * 19 + [[0.2]]), _one_stratum(20, 1000))
    assert low[0] < 0.85  # Student's is 0.877 to 1.043
    assert high[0] <= 1.0
    low, high = mean_intervals(np.ones((20, 1)), _one_stratum(20, 20))
    assert (low[0], high[0]) == pytest.approx((1.0, 1.0))  # all that there are
    assert np.isnan(mean_intervals(np.ones((20, 1)), _one_stratum(20, 1000), bounded=False)).all()


@pytest.mark.parametrize(
    ("n", "shape"), [(10, "rare"), (20, "rare"), (40, "rare"), (40, "mixed"), (100, "mixed"), (20, "even")]
)
def test_intervals_of_drawn_queries_hold_the_mean_of_all(n: int, shape: str) -> None:
    """n of 1,000; Student's holds 37, 65 and 87% where 5% fail, and 91% where a fifth does in part."""
    rng, runs, held = np.random.default_rng(n), 200, 0
    for _ in range(runs):
        failing = {"rare": rng.random(1000) < 0.05, "mixed": rng.random(1000) < 0.2, "even": np.full(1000, True)}[shape]
        scores = np.where(failing, 0.0 if shape == "rare" else rng.random(1000), 1.0)
        low, high = mean_intervals(rng.choice(scores, n, replace=False)[:, None], _one_stratum(n, 1000), resamples=1000)
        assert low[0] >= 0
        assert high[0] <= 1
        held += low[0] <= scores.mean() <= high[0]
    assert held / runs >= 0.91  # 95% of 200: fewer in about 1 of 100


def test_intervals_of_several_strata_with_unequal_weights_hold() -> None:
    """Head-heavy traffic of which a twentieth fails, few drawn of each third."""
    rng, runs, held, students = np.random.default_rng(8), 150, 0, 0
    counts = np.ceil(3000 / np.arange(1, 801))
    band = np.minimum(2, (np.concatenate([[0], np.cumsum(counts)[:-1]]) / counts.sum() * 3).astype(int))
    for _ in range(runs):
        scores = (rng.random(800) < 0.95).astype(float)
        chosen = [
            rng.choice(of, min(len(of), 8), replace=False) for of in (np.flatnonzero(band == b) for b in range(3))
        ]
        share = [counts[at] / counts[at].sum() * counts[band == b].sum() / counts.sum() for b, at in enumerate(chosen)]
        names = [str(b) for b, at in enumerate(chosen) for _ in at]
        sizes = [int((band == b).sum()) for b, at in enumerate(chosen) for _ in at]
        strata, drawn = Strata(np.concatenate(share), names, sizes), scores[np.concatenate(chosen)][:, None]
        truth = float(counts @ scores / counts.sum())
        low, high = mean_intervals(drawn, strata, resamples=1000)
        held += low[0] <= truth <= high[0]
        _, low, high, _ = estimates(drawn, strata)
        students += low[0] <= truth <= high[0]
    assert held / runs >= 0.91
    assert students / runs < 0.75  # which is why


@pytest.mark.parametrize("varied", [20, 40])
def test_a_varied_stratum_says_nothing_of_another_one(varied: int) -> None:
    """The head has 70% of the traffic and fails in 5% of its queries, 20 of them drawn; the tail varies."""
    rng, runs, held = np.random.default_rng(varied), 150, 0
    weights = np.concatenate([np.full(20, 0.7 / 20), np.full(varied, 0.3 / varied)])
    strata = Strata(weights, ["head"] * 20 + ["tail"] * varied, [1000] * (20 + varied))
    for _ in range(runs):
        head, tail = (rng.random(1000) >= 0.05).astype(float), rng.random(1000)
        drawn = np.concatenate([rng.choice(head, 20, replace=False), rng.choice(tail, varied, replace=False)])
        low, high = mean_intervals(drawn[:, None], strata, resamples=1000)
        held += low[0] <= 0.7 * head.mean() + 0.3 * tail.mean() <= high[0]
    assert held / runs >= 0.91  # by the number of unlike values in all: 83 and 75%


def test_rounding_is_no_spread() -> None:
    weights = np.array([0.3, 0.1, 0.2, 0.4])
    strata = Strata(weights, ["all"] * 4, [40] * 4)
    assert estimate(np.full(4, 0.3), strata).p == pytest.approx(2 / 2**4)  # four signs that are alike


def test_a_stratum_of_two_is_taken_together_with_the_largest_other() -> None:
    """By hand: residuals from the weighted mean of both strata, 5 of 130 queries drawn."""
    values, weights = np.array([1.0, 0.0, 0.5, 0.5, 0.8]), np.array([0.3, 0.2, 0.2, 0.2, 0.1])
    strata = Strata(weights, ["head", "head", "tail", "tail", "tail"], [30, 30, 100, 100, 100])
    mean = 0.3 + 0.1 + 0.1 + 0.08
    error = np.sqrt((1 - 5 / 130) * 5 / 4 * ((weights * (values - mean)) ** 2).sum())
    found = estimate(values, strata)
    assert found.mean == pytest.approx(mean)
    assert (found.high - found.low) / 2 == pytest.approx(error * stats.t.ppf(0.975, 4))
