"""Extrapolation in the size of the corpus, on simulated corpora whose true curve is known."""

from __future__ import annotations

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.statistics.growth import extrapolate

SIZES = (3_000, 10_000, 30_000, 100_000)


def _scores(rng: np.random.Generator, queries: int, sizes: tuple[int, ...], powers: tuple[int, int]) -> Values:
    """One relevant document per query; each other one beats it with a chance of the query's own.

    Samples are nested: who beats it in a small one does so in a large one. The score is NDCG@10.
    """
    chance = 10 ** rng.uniform(*powers, queries)
    steps = np.diff((0, *sizes))
    above = np.cumsum(rng.binomial(steps[:, None], chance), axis=0)
    return np.where(above < 10, 1 / np.log2(above + 2), 0.0)


@pytest.mark.parametrize("powers", [(-8, -3), (-6, -3), (-7, -4)], ids=str)
@pytest.mark.parametrize("target", [1_000_000, 10_000_000])
def test_the_interval_holds_the_truth_at_ten_and_a_hundred_times_the_documents(
    target: int, powers: tuple[int, int]
) -> None:
    """Three known curves: one that falls slowly, one that ends near 0, one that is only beginning to fall."""
    truth = float(_scores(np.random.default_rng(0), 100_000, (target,), powers).mean())
    held = 0
    for seed in range(100):
        estimate = extrapolate(_scores(np.random.default_rng(seed + 1), 300, SIZES, powers), SIZES, target)
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
