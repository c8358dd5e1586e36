"""What queries can show: how often a gap is found that is said to go unnoticed below, and what a plan finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
from bakeoff.core.arrays import Values
from bakeoff.statistics.best_set import best_set
from bakeoff.statistics.detectable import (
    FEW_PILOTS,
    find_noticeable_gap,
    queries_for_gap,
    queries_to_separate,
    round_gap,
)
from numpy.random import Generator

from simulate import worlds
from simulate.sets import FLIPS, SEED, draws
from simulate.table import Line
from simulate.worlds import World

PAIRS = tuple(combinations(range(8), 2))
PILOTS = (20, 50, 100, 300)
FRESH = 20  # data sets for each pilot
GAP = 0.1


def simulate(effort: float) -> Iterator[Line]:
    """Both claims."""
    yield from unnoticed(PILOTS, max(28, round(effort * 280)))
    for gap in (0.05, 0.1):
        yield from planned(gap, (20, 30, 50, 100), max(28, round(effort * 140)))
    for k in (3, 8, 20):
        yield separated(k, (20, 50, 100), max(28, round(effort * 140)))


def unnoticed(pilots: tuple[int, ...], sets: int) -> Iterator[Line]:
    """From a pilot's gap, in fresh draws of the same pair where that gap is the truth, or four fifths of it."""
    rates, silent = [], []
    for n in pilots:
        rng = np.random.default_rng([SEED, n])
        found = [_found(rng, n, PAIRS[at % len(PAIRS)]) for at in range(sets)]
        said = [each for each in found if each is not None]
        silent.append(1 - len(said) / sets)
        rates.append(np.nanmean(np.array(said), axis=0) if said else np.full(6, np.nan))
    tilt, fails = "tilted real pairs", "real pairs, one fails"
    shares = (
        ("a gap of X is found", tilt, 0.7, 0.9),
        ("a gap of 0.8 X is found", tilt, None, 0.7),
        ("a gap of X is found", fails, None, None),
        ("a gap of 0.8 X is found", fails, None, 0.7),
        ("a gap of 0.8 X, X rounded, is found", tilt, None, 0.7),
        ("X", tilt, None, None),
    )
    for (claim, world, at_least, at_most), values in zip(shares, np.array(rates).T, strict=True):
        yield Line(claim, world, 2, pilots, values.tolist(), sets, at_least, at_most)
    yield Line("nothing is said", tilt, 2, pilots, silent, sets)


def _found(rng: Generator, n: int, columns: tuple[int, int]) -> tuple[float, ...] | None:
    pair, pilot = _pilot(rng, n, columns)
    gap = find_noticeable_gap(*pilot.T)
    if gap is None:
        return None
    rounded = round_gap(gap, n)
    return (
        _share(rng, worlds.tilted, pair, gap, n),
        _share(rng, worlds.tilted, pair, 0.8 * gap, n),
        _share(rng, worlds.failing_rival, pair, gap, n),
        _share(rng, worlds.failing_rival, pair, 0.8 * gap, n),
        _share(rng, worlds.tilted, pair, 0.8 * rounded, n),
        gap,
    )


def planned(gap: float, pilots: tuple[int, ...], sets: int) -> Iterator[Line]:
    """The middle of the plan, in fresh draws of the pair where the gap is the truth."""
    tilt, fails, share_within = [], [], []
    for n in pilots:
        rng = np.random.default_rng([SEED, n, 1])
        found = []
        for at in range(sets):
            pair, pilot = _pilot(rng, n, PAIRS[at % len(PAIRS)])
            plan = queries_for_gap(*pilot.T, gap=gap)
            if plan is None:
                continue
            truth = queries_for_gap(*pair.T, gap=gap)
            assert truth is not None
            middle = plan[0] if plan[0] == plan[1] else round(plan[1] / 2)
            found.append((
                _share(rng, worlds.tilted, pair, gap, middle),
                _share(rng, worlds.failing_rival, pair, gap, middle),
                plan[0] <= truth[0] <= plan[1],
            ))  # fmt: skip
        one, other, within = np.mean(np.array(found), axis=0)
        tilt.append(float(one))
        fails.append(float(other))
        share_within.append(float(within))
    claim = f"planned queries find a gap of {gap}"
    yield Line(claim, "tilted real pairs", 2, pilots, tilt, sets, 0.75, 0.9)
    yield Line(claim, "real pairs, one fails", 2, pilots, fails, sets)
    few = tuple(n for n in pilots if n < FEW_PILOTS)
    yield Line(f"the range for a gap of {gap} holds the number", "real pairs", 2, few, share_within[: len(few)], sets)


def separated(k: int, pilots: tuple[int, ...], sets: int) -> Line:
    """How often the queries that a pilot asks for exclude rows from the set that are 0.1 behind the best."""
    world, shown = worlds.one_better(k, GAP), []
    rng = np.random.default_rng([SEED, k, 2])
    behind = np.arange(k) != 1
    for n in pilots:
        rates = []
        for pilot in draws(world, n, sets):
            within = best_set(pilot, flips=FLIPS).within
            plan = queries_to_separate(pilot, within if within.sum() > 1 else np.ones(k, dtype=bool), gap=GAP)
            if plan is not None:
                middle = plan[0] if plan[0] == plan[1] else round(plan[1] / 2)
                rates.append(1 - best_set(world.draw(rng, middle), flips=FLIPS).within[behind].mean())
        shown.append(float(np.mean(rates)))
    return Line(f"planned queries exclude rows {GAP} behind", world.name, k, pilots, shown, sets, 0.75, 0.9)


def _pilot(rng: Generator, n: int, columns: tuple[int, int]) -> tuple[Values, Values]:
    """A real pair and n of its queries, with the row first that leads on these."""
    pair = worlds.scifact()[:, list(columns)]
    pilot = pair[rng.integers(len(pair), size=n)]
    order = [0, 1] if pilot[:, 0].mean() >= pilot[:, 1].mean() else [1, 0]
    return pair[:, order], pilot[:, order]


def _share(rng: Generator, make: Callable[[Values, float], World], pair: Values, gap: float, n: int) -> float:
    """How often the set excludes the worse of the two."""
    try:
        world = make(pair, gap)
    except ValueError:
        return float("nan")
    return float(np.mean([not best_set(world.draw(rng, n), flips=FLIPS).within[1] for _ in range(FRESH)]))
