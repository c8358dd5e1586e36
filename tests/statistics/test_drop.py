"""One-sided tests of a drop: scipy's, by hand, and at their rates in simulated worlds."""

from __future__ import annotations

import numpy as np
import pytest
from bakeoff.statistics.compare import assess_drop, finds_drop
from scipy import stats
from simulate import gates


def test_it_is_students_one_sided_test_against_the_allowance() -> None:
    d = np.random.default_rng(1).normal(-0.05, 0.2, 40)
    found = assess_drop(d, 0.02)
    assert found.p == pytest.approx(stats.ttest_1samp(d, -0.02, alternative="less").pvalue)
    half = stats.t.ppf(0.95, 39) * stats.sem(d)
    assert (found.least, found.most) == pytest.approx((-d.mean() - half, -d.mean() + half))
    guarded = assess_drop(d, 0.02, imagined=-1.0)
    worse = np.append(d, -1.0)
    assert guarded.most == pytest.approx(-worse.mean() + stats.t.ppf(0.95, 40) * stats.sem(worse))
    assert (guarded.p, guarded.least) == (found.p, found.least)


def test_queries_that_all_lose_alike_are_as_good_as_their_number() -> None:
    assert assess_drop(np.full(6, -0.1), 0.02).p == 0.5**6
    assert assess_drop(np.full(6, -0.02), 0.02).p == 1.0
    assert assess_drop(np.full(1, -0.9), 0.02).p == 1.0
    assert assess_drop(np.zeros(8), 0.0).p == 1.0


def test_the_drop_that_is_found_by_hand() -> None:
    """Nothing changed and every score is 1: a drop δ has the variance δ(1 − δ), and δ − 0.02 is 2.5 or so errors."""
    drop = finds_drop(np.zeros(50), np.ones(50), 0.02)
    assert drop is not None
    error = np.sqrt(drop * (1 - drop) / 50)
    assert (drop - 0.02) / error == pytest.approx(stats.t.ppf(0.95, 49) + stats.norm.ppf(0.8), abs=1e-6)
    assert finds_drop(np.zeros(3), np.full(3, 0.02), 0.02) is None
    assert finds_drop(np.zeros(1), np.ones(1), 0.02) is None


@pytest.mark.parametrize("loss", [0.0, gates.ALLOWED])
def test_a_drop_that_is_allowed_seldom_fails_and_a_loss_seldom_passes(loss: float) -> None:
    for world in gates.drops(loss):
        assert not gates.fails(world, loss, 300, 0.055).missed
        assert not gates.bounds(world, loss, 300).missed
        if loss:
            assert not gates.passes(world, loss, 300, 0.055).missed


@pytest.mark.slow
def test_a_drop_that_the_gate_says_it_finds_is_found() -> None:
    for world in gates.drops(0.0):
        for contenders in gates.CONTENDERS:
            assert not gates.finds(world, 200, contenders).missed
