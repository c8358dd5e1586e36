"""Several looks at growing data: how often a wrong row is excluded or called better at any of them, and what they cost.

Queries come in one order, and a look sees the first of them. An error at any look counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from bakeoff.core.arrays import Values
from bakeoff.statistics.best_set import best_set
from bakeoff.statistics.incumbent import versus
from numpy.random import Generator
from numpy.typing import NDArray

from simulate import worlds
from simulate.sets import FLIPS, draws
from simulate.table import Line
from simulate.worlds import World

PLANS = (3, 5)  # looks
UNPLANNED = (50, 60, 80, 120)  # queries at four looks, each after more were labelled
MOST = (100, 300)  # queries of a whole plan
ROWS = (2, 8, 20)
INTERLEAVED_LOOKS = 50
SETS = {2: 2000, 8: 1000, 20: 400}
PROMISED = 0.055
PROMISED_SET = {2: 0.055, 8: 0.06, 20: 0.06}

Seen = Callable[[Values, Sequence[int]], NDArray[np.bool_]]


def null_worlds(k: int) -> list[World]:
    """No row is better than the first: ties, zeros and ones, failures seen and unseen, near-duplicates, skew."""
    return [
        worlds.equal_means(k),
        worlds.equal_means_by_failures(k),
        worlds.duplicates(k),
        worlds.rare_failures(k, 0.05),
        worlds.hidden_failures(k, 0.05),
        worlds.hidden_failures_among_ties(k, 0.05),
        worlds.skewed(k),
        worlds.skewed(k, rare_gains=True),
    ]


def planned(most: int, looks: int) -> tuple[int, ...]:
    """Equal steps."""
    return tuple(round(most * (at + 1) / looks) for at in range(looks))


def simulate(effort: float) -> Iterator[Line]:
    """What repeated plain tests do; `effort` multiplies the number of data sets."""
    for k in ROWS:
        sets = max(40, round(effort * SETS[k] / 4))
        for world in null_worlds(k)[:2]:
            yield excluded("plain tests", plain_set, world, planned(100, 5), sets)
            yield excluded("plain tests, unplanned", plain_set, world, UNPLANNED, sets)
            yield beaten("plain tests", plain_versus, world, planned(100, 5), sets)
    yield interleaved("plain tests", plain_votes, max(200, round(effort * 2000)))


def excluded(how: str, seen: Seen, world: World, looks: Sequence[int], sets: int, at_most: float | None = None) -> Line:
    """How often the best row is excluded at any look. Equally good rows count alike."""
    best = world.means >= world.means.max() - 1e-12
    wrong = [float(seen(table, looks)[best].mean()) for table in draws(world, looks[-1], sets)]
    return _line(f"the best row is excluded at any look, {how}", world, looks, float(np.mean(wrong)), sets, at_most)


def beaten(how: str, seen: Seen, world: World, looks: Sequence[int], sets: int, at_most: float | None = None) -> Line:
    """How often any row is called better than the first at any look, which none of them is."""
    wrong = [bool(seen(table, looks).any()) for table in draws(world, looks[-1], sets)]
    claim = f"a row beats the incumbent at any look, {how}"
    return _line(claim, world, looks, float(np.mean(wrong)), sets, at_most)


def _line(claim: str, world: World, looks: Sequence[int], measured: float, sets: int, at_most: float | None) -> Line:
    shown = f"{world.name}, looks at {' '.join(map(str, looks))}"
    return Line(claim, shown, len(world.means), (looks[-1],), [measured], sets, at_most=at_most)


def plain_set(table: Values, looks: Sequence[int]) -> NDArray[np.bool_]:
    """Rows that the ordinary set leaves out at some look."""
    out: NDArray[np.bool_] = np.any([~best_set(table[:n], flips=FLIPS).within for n in looks], axis=0)
    return out


def plain_versus(table: Values, looks: Sequence[int]) -> NDArray[np.bool_]:
    """Rows that the ordinary test calls better than the first at some look."""
    out: NDArray[np.bool_] = np.any([versus(table[:n], 0, flips=FLIPS).low > 0 for n in looks], axis=0)
    return out


def votes(rng: Generator, users: int = 500, preference: float = 0.0) -> list[tuple[int, int]]:
    """Users for b and for a at 50 looks at a growing log.

    Each user comes one to three times and prefers one side a little, either side as often as the other unless there is
    a `preference`. A user's vote is the side that won more of their queries so far.
    """
    asks = np.repeat(np.arange(users), rng.integers(1, 4, users))
    when = np.sort(rng.random(users))[asks] + rng.exponential(0.05, len(asks))
    order = np.argsort(when, kind="stable")
    chance = np.clip(0.5 + preference / 2 + rng.choice([-0.2, 0.2], users), 0, 1)
    signs = np.where(rng.random(len(asks)) < 0.3, 0, np.where(rng.random(len(asks)) < chance[asks], 1, -1))
    found = []
    for at in range(1, INTERLEAVED_LOOKS + 1):
        there = order[: round(len(order) * at / INTERLEAVED_LOOKS)]
        sums = np.bincount(asks[there], signs[there], users)
        found.append((int((sums > 0).sum()), int((sums < 0).sum())))
    return found


def interleaved(
    how: str, decides: Callable[[int, int], bool], sets: int, at_most: float | None = None, preference: float = 0.0
) -> Line:
    """How often a preference is shown at any of 50 looks."""
    rng = np.random.default_rng([50, sets])
    shown = [any(decides(*each) for each in votes(rng, preference=preference)) for _ in range(sets)]
    world = f"interleaved, preference {preference:g}, {INTERLEAVED_LOOKS} looks"
    claim = f"a preference is shown at any look, {how}"
    return Line(claim, world, 2, (500,), [float(np.mean(shown))], sets, at_most=at_most)


def plain_votes(ahead: int, behind: int) -> bool:
    """The exact sign test."""
    from bakeoff.extensions.production.traffic import sign_test

    return sign_test(ahead, behind) <= 0.05
