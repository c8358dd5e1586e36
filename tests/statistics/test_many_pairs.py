"""Very many pairs: the tail of the sign-flip test against all flips counted, and what it makes of Holm's step."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.statistics.compare import compare, compare_nearest, outlook, tied_with_best
from bakeoff.statistics.flip_tail import tail_p
from bakeoff.statistics.many_pairs import MANY_PAIRS, pair_tests
from bakeoff.statistics.tests import holm_of_pairs, sign_flip_tests
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from tests.examples import examples


def _counter(differences: Values) -> Callable[[float], float]:
    """For a bar, the share of all 2ⁿ flips whose sum is at least as far from 0, from the sums of two halves."""
    half = len(differences) // 2
    left, right = (_flipped(part) for part in (differences[:half], differences[half:]))
    right.sort()
    return lambda bar: 2 * int((len(right) - np.searchsorted(right, bar - left)).sum()) / 2.0 ** len(differences)


def _flipped(differences: Values) -> Values:
    signs = 1.0 - 2.0 * ((np.arange(2 ** len(differences))[:, None] >> np.arange(len(differences))) & 1)
    return np.asarray(signs @ differences)


SHAPES: dict[str, Callable[[np.random.Generator], Values]] = {
    "normal": lambda rng: rng.normal(size=28),
    "skewed": lambda rng: rng.exponential(size=28) - 1,
    "heavy": lambda rng: rng.laplace(size=28),
}
READ_BELOW = 0.02  # where the tail is read: fewer than 20 of at least 1,000 flips


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(list(SHAPES)), st.floats(0.3, 1.5))
def test_the_tail_is_that_of_all_flips_counted(seed: int, shape: str, shift: float) -> None:
    """Counted flips make steps, of a third of p where sums lie close together; the tail is smooth and runs between.

    So it must be a share that is counted within 0.06 deviations of the observed sum.
    """
    differences = SHAPES[shape](np.random.default_rng(seed)) + shift
    if 20 / 2**28 <= _counter(differences)(abs(float(differences.sum())) * (1 - 1e-12)) <= READ_BELOW:
        _check_between_steps(differences)


def _check_between_steps(differences: Values) -> None:
    counted, total = _counter(differences), abs(float(differences.sum()))
    near = 0.06 * float(np.sqrt((differences**2).sum()))
    assert counted(total + near) <= tail_p(differences[None])[0] <= counted(total - near)


def test_the_tail_runs_through_a_step_of_the_counted_flips() -> None:
    """Two differences near 0 and three alike: 16 of the 48 flips as extreme lie within 0.06 of the observed sum."""
    sizes = [0.41, 0.48, 0.58, 0.736, 1.34, 1.341, 1.345, 1.62, 1.742, 1.747, 1.91, 2.03, 2.35]
    differences = np.array([-0.741, -0.017, -0.004, *sizes])
    counted, total = _counter(differences), float(differences.sum())
    assert counted(total - 1e-9) * 2**16 == 48
    assert counted(total + 0.06) * 2**16 == 32
    assert 32 < tail_p(differences[None])[0] * 2**16 < 48
    _check_between_steps(differences)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_tail_is_neither_above_nor_below_the_counted_flips_as_a_rule(shape: str) -> None:
    ratios = []
    for seed in range(80):
        differences = SHAPES[shape](np.random.default_rng(seed)) + 0.7
        p = _counter(differences)(abs(float(differences.sum())) * (1 - 1e-12))
        if 1000 / 2**28 <= p <= READ_BELOW:  # so many flips that steps hardly show
            ratios.append(tail_p(differences[None])[0] / p)
    assert len(ratios) >= 40
    assert np.median(ratios) == pytest.approx(1, abs=0.02)
    assert ratios == pytest.approx([1.0] * len(ratios), abs=0.15)


def test_signs_alone_are_a_binomial_test() -> None:
    differences = np.array([[0.5] * 60 + [-0.5] * 14 + [0.0] * 26])
    assert tail_p(differences)[0] == pytest.approx(stats.binomtest(60, 74).pvalue, rel=1e-9)


def test_where_every_query_agrees_only_two_flips_are_as_extreme() -> None:
    assert tail_p(np.array([np.linspace(0.1, 1, 30)]))[0] == pytest.approx(2.0**-29)


def test_far_in_the_tail_it_is_the_sum_of_two_binomials() -> None:
    """A thousand differences of two sizes, about six deviations out: the exact p is a sum over one of the two."""
    sizes, signs = np.repeat([1.0, 1.1], 500), np.ones(1000)
    signs[300:704] = -1
    differences = sizes * signs
    heads = np.arange(501)
    needed = np.ceil((differences.sum() - 1.1 * (2 * heads - 500) + 500) / 2 - 1e-9)
    exact = 2 * float(stats.binom.pmf(heads, 500, 0.5) @ stats.binom.sf(needed - 1, 500, 0.5))
    assert exact < 1e-8
    assert tail_p(differences[None])[0] == pytest.approx(exact, rel=0.05)


@pytest.fixture(scope="module")
def table() -> Values:
    """46 contenders, so 1,035 pairs; the last one is far better than all others."""
    rng = np.random.default_rng(1)
    scores = np.clip(rng.uniform(0, 0.7, (100, 1)) + rng.normal(0.1, 0.15, (100, 46)), 0, 1)
    scores[:, -1] = np.clip(scores[:, -1] + 0.25, 0, 1)
    return scores


def test_p_of_many_pairs_is_that_of_few(table: Values) -> None:
    pairs = list(combinations(range(46), 2))
    assert len(pairs) > MANY_PAIRS
    many, chosen = pair_tests(table, pairs), pairs[::97]
    few = sign_flip_tests(table, chosen)
    mine = many[::97]
    error = np.sqrt(few * (1 - few) / 100_000)
    assert np.all(np.abs(mine - few) <= 5 * error + 0.1 * few + 1e-5)
    counted = many[many > 0.01] * 100_001  # every one of the 100,000 flips, and the observed one
    assert counted == pytest.approx(np.round(counted), abs=1e-6)


def test_a_clear_winner_is_told_from_all_of_many(table: Values) -> None:
    """100,000 flips can't show a p below 1e-5, which times 1,035 pairs is 0.01 at best."""
    scores = {f"c{at}": table[:, at] for at in range(46)}
    pairs = compare_nearest(scores)
    with_best = [pair for pair in pairs if "c45" in (pair.a, pair.b)]
    assert len(with_best) == 45
    assert max(pair.p_holm for pair in with_best) < 1e-3
    assert tied_with_best(scores, 42) == {name: name == "c45" for name in scores}
    order = sorted(scores, key=lambda name: -scores[name].mean())
    expected = {frozenset(two) for two in pairwise(order)} | {frozenset(("c45", name)) for name in order[1:]}
    assert {frozenset((pair.a, pair.b)) for pair in pairs} == expected
    ahead = outlook(scores, "c45")
    assert ahead is not None
    assert (ahead.pairs, ahead.more) == (1035, 0)
    assert 0 < ahead.detectable < 0.2


def test_few_contenders_keep_every_pair_and_figure(table: Values) -> None:
    scores = {f"c{at}": table[:, at] for at in range(8)}
    assert compare_nearest(scores) == compare(scores)


def _by_scipy(differences: Values) -> float:
    """Lugannani and Rice's formula from the textbook, its equation solved by scipy."""
    target = abs(float(differences.sum()))

    def slope(t: float) -> float:
        return float((differences * np.tanh(t * differences)).sum()) - target

    t = optimize.brentq(slope, 1e-9, 1e3, xtol=1e-14)
    w = np.sqrt(2 * (t * target - np.log(np.cosh(t * differences)).sum()))
    u = t * np.sqrt((differences**2 / np.cosh(t * differences) ** 2).sum())
    return float(2 * (stats.norm.sf(w) + stats.norm.pdf(w) * (1 / u - 1 / w)))


@pytest.mark.parametrize("shift", [0.1, 0.5, 1.5])
def test_the_tail_is_the_textbooks(shift: float) -> None:
    rng = np.random.default_rng(9)
    rows = rng.normal(shift, 1, size=(4, 40)) * [[1.0], [0.01], [30.0], [1.0]]
    rows[3, 5:12] = 0.0
    assert tail_p(rows).tolist() == pytest.approx([_by_scipy(row) for row in rows], rel=1e-6)


def test_a_sum_of_nothing_is_no_evidence() -> None:
    rng = np.random.default_rng(10)
    level = rng.normal(size=(5, 20))
    level -= level.mean(axis=1, keepdims=True)
    p = tail_p(np.concatenate((level, np.zeros((1, 20)))))
    assert p[-1] == 1
    assert ((p > 0.9) & (p <= 1)).all()
    few = np.array([[1.0] * 5 + [-1.0] * 5, [0.5] * 3 + [-0.5] * 6 + [0.0]])
    assert tail_p(few).tolist() == pytest.approx([1.0, stats.binomtest(3, 9).pvalue])


def test_pairs_that_hardly_differ_are_counted_among_many(table: Values) -> None:
    """Equal columns, and columns that differ on 3, 12 and 13 queries, always by as much: p is 2 / 2ⁿ."""
    changed = table.copy()
    for column, queries in ((1, 0), (2, 3), (3, 12), (4, 13)):
        changed[:, column] = changed[:, 0]
        changed[50 : 50 + queries, column] += 0.5
    pairs = list(combinations(range(46), 2))
    p = dict(zip(pairs, pair_tests(changed, pairs), strict=True))
    assert p[0, 1] == 1
    assert [p[0, 2], p[0, 3]] == pytest.approx([2 / 2**3, 2 / 2**12])
    assert p[0, 4] == pytest.approx(2 / 2**13, abs=5e-5)  # 13 are too many to count: flips are drawn
    assert p[3, 4] == 1.0  # one query: both signs are as extreme


def test_a_difference_of_nothing_has_a_p_of_one_among_many(table: Values) -> None:
    """Each flip of twenty wins and twenty losses by as much is as far from 0 as what was seen, which counts too."""
    changed = table.copy()
    changed[:, 1] = changed[:, 0]
    changed[:20, 1] += 0.5
    changed[20:40, 1] -= 0.5
    assert pair_tests(changed, list(combinations(range(46), 2)))[0] == 1.0


def test_few_flips_still_tell_eleven_contenders_apart() -> None:
    """100,000 queries get 1,000 flips, of which the least p is 1 / 1,001: times 55 pairs, nothing could be significant.

    Here every query has the same order, so only 2 of the 2⁴⁰ flips are as extreme.
    """
    table = np.random.default_rng(3).random((40, 1)) + 0.05 * np.arange(11)
    pairs = list(combinations(range(11), 2))
    p = pair_tests(table, pairs, flips=1000)
    assert p.tolist() == pytest.approx([2.0**-39] * 55)
    assert holm_of_pairs(p, table, pairs).max() == pytest.approx(55 * 2.0**-39)


def test_a_p_beyond_few_flips_is_the_binomial_tests() -> None:
    """As many contenders as one likes may be held to a random order: 50 queries won by as much as 10 are lost."""
    d = np.where(np.arange(60) < 50, 0.1, -0.1)
    table = np.repeat(d[:, None], 60, axis=1)
    exact = float(stats.binomtest(50, 60).pvalue)
    assert sign_flip_tests(table, flips=1000).tolist() == pytest.approx([exact] * 60, rel=1e-9)


def test_where_flips_are_enough_they_are_counted() -> None:
    d = np.where(np.arange(60) < 50, 0.1, -0.1)[:, None]
    assert sign_flip_tests(d)[0] * 100_001 == pytest.approx(round(sign_flip_tests(d)[0] * 100_001), abs=1e-6)


def test_a_p_beyond_the_flips_of_many_pairs_is_the_binomial_tests(table: Values) -> None:
    """The second of 46 wins 88 queries of 100 and loses 12, by 0.1 each."""
    changed = table.copy()
    changed[:, 1] = changed[:, 0] + np.where(np.arange(100) < 88, 0.1, -0.1)
    p = pair_tests(changed, list(combinations(range(46), 2)))[0]
    assert p == pytest.approx(float(stats.binomtest(88, 100).pvalue), rel=1e-9, abs=0)
