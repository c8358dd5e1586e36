"""Very many pairs: the tail of the sign-flip test against all flips counted, and what it makes of Holm's step."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.statistics.compare import compare, compare_nearest, outlook, tied_with_best
from bakeoff.statistics.many_pairs import MANY_PAIRS, pair_tests, tail_p
from bakeoff.statistics.tests import sign_flip_tests
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats


def _counted(differences: Values) -> float:
    """Every one of the 2ⁿ flips, one by one."""
    n = len(differences)
    signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    sums = np.abs(signs @ differences)
    return float(np.mean(sums >= abs(differences.sum()) * (1 - 1e-12)))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["normal", "skewed", "heavy"]), st.floats(0.3, 1.5))
def test_the_tail_is_that_of_all_flips_counted(seed: int, shape: str, shift: float) -> None:
    rng = np.random.default_rng(seed)
    drawn = {"normal": rng.normal(size=16), "skewed": rng.exponential(size=16) - 1, "heavy": rng.laplace(size=16)}
    differences = drawn[shape] + shift
    counted = _counted(differences)
    if 20 / 2**16 <= counted <= 0.2:  # fewer than 20 flips of 65,536: the true p itself jumps
        assert tail_p(differences[None])[0] == pytest.approx(counted, rel=0.25)


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
