"""Looks at a question whose queries share needs."""

from __future__ import annotations

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.results.looks import QuestionLooks, set_over_looks, versus_over_looks
from bakeoff.results.schema import Look
from bakeoff.statistics.averaging import averaging_of
from bakeoff.statistics.looks import Looks, best_set_at

NEEDS = 60


def _looks(joined: list[int]) -> QuestionLooks:
    fact = Look(number=max(joined), queries=[joined.count(look) for look in range(1, max(joined) + 1)], planned=False)
    return QuestionLooks(Looks(np.array(joined)), fact)


def _table(seed: int, gap: float) -> Values:
    """Two rows; each need has two queries in a row."""
    rng = np.random.default_rng(seed)
    first = rng.uniform(0.4, 0.6, 2 * NEEDS)
    return np.stack((first, first - gap + rng.uniform(-0.1, 0.1, 2 * NEEDS)), axis=1)


def test_a_need_joins_at_the_look_that_makes_it_whole() -> None:
    """By hand: of six needs with two queries, the last two are whole at the second look only."""
    table, clusters = _table(1, 0.1), [f"need{at // 2}" for at in range(2 * NEEDS)]
    joined = [2 if at // 2 >= NEEDS - 2 and at % 2 else 1 for at in range(2 * NEEDS)]
    found = set_over_looks(averaging_of([None] * len(table), clusters=clusters), table, _looks(joined), bounded=True)
    means = table.reshape(NEEDS, 2, 2).mean(axis=1)
    expected = best_set_at(means, Looks(np.array([1] * (NEEDS - 2) + [2] * 2)))
    assert found.p == pytest.approx(expected.p)


def test_where_every_need_was_asked_again_a_later_look_still_shows_what_is_plain() -> None:
    """No need is whole at the first look, so nothing of it is left; a gap of several standard errors is seen."""
    table, clusters = _table(2, 0.3), [f"need{at // 2}" for at in range(2 * NEEDS)]
    averaging = averaging_of([None] * len(table), clusters=clusters)
    looks = _looks([1, 2] * NEEDS)
    found = set_over_looks(averaging, table, looks, bounded=True)
    assert found.within.tolist() == [True, False]
    assert 0.1 < found.least[1] < 0.3 < found.most[1] < 0.5
    against = versus_over_looks(averaging, table, 0, looks, bounded=True)
    assert -0.5 < against.low[1] < -0.3 < against.high[1] < -0.1
