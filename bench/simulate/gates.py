"""The gate: how often a drop that is allowed fails, one that it promises to find does, and a loss passes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from bakeoff.core.arrays import Values
from bakeoff.statistics.compare import assess_drop, finds_drop
from bakeoff.statistics.tests import holm

from simulate import worlds
from simulate.sets import SEED, draws
from simulate.table import Line
from simulate.worlds import World

ALLOWED = 0.02
QUERIES = (30, 100, 300, 1000)
ALPHA = 0.05
CONTENDERS = (1, 7)  # that changed


def drops(loss: float) -> list[World]:
    """The first row is before, the second after: two real rows, one that fails more often, and near-duplicates."""
    pair = worlds.scifact()[:, :2]
    return [
        worlds.tilted(pair, loss),
        worlds.failing_rival(pair, loss),
        worlds.loss_by_failures(loss, ties=True),
        worlds.loss_by_failures(loss, ties=False),
    ]


def simulate(effort: float) -> Iterator[Line]:
    """Rates at no drop, at the allowed one, at twice that, and at the one that the gate says it finds."""
    sets = max(200, round(effort * 3000))
    for loss, most in ((0.0, 0.05), (ALLOWED, 0.055), (2 * ALLOWED, None)):
        for world in drops(loss):
            yield fails(world, loss, sets, most)
            yield passes(world, loss, sets, 0.055 if loss >= ALLOWED else None)
            yield bounds(world, loss, sets)
    for world in drops(0.0):
        for contenders in CONTENDERS:
            yield finds(world, max(100, round(effort * 600)), contenders)


def _differences(world: World, n: int, sets: int) -> Iterator[Values]:
    return (table[:, 1] - table[:, 0] for table in draws(world, n, sets))


def fails(world: World, loss: float, sets: int, at_most: float | None) -> Line:
    """How often the gate fails."""
    rates = [
        float(np.mean([assess_drop(d, ALLOWED).p <= ALPHA for d in _differences(world, n, sets)])) for n in QUERIES
    ]
    return Line(f"gate fails at a drop of {loss:g}", world.name, 2, QUERIES, rates, sets, at_most=at_most)


def passes(world: World, loss: float, sets: int, at_most: float | None) -> Line:
    """How often non-inferiority is shown."""
    rates = [
        float(np.mean([assess_drop(d, ALLOWED, imagined=-1.0).most < ALLOWED for d in _differences(world, n, sets)]))
        for n in QUERIES
    ]
    return Line(f"non-inferiority at a drop of {loss:g}", world.name, 2, QUERIES, rates, sets, at_most=at_most)


def bounds(world: World, loss: float, sets: int) -> Line:
    """How often a drop is at most what the gate says, whatever its outcome."""
    rates = [
        float(np.mean([assess_drop(d, ALLOWED, imagined=-1.0).most >= loss for d in _differences(world, n, sets)]))
        for n in QUERIES
    ]
    return Line("a drop is at most what the gate says", world.name, 2, QUERIES, rates, sets, at_least=0.94)


def finds(world: World, sets: int, contenders: int = 1) -> Line:
    """How often a drop as large as a sample without one promises is found in a fresh sample that has it by failures.

    The others changed as the world has it, without a drop; Holm's correction is over all of them.
    """
    rates = []
    rng = np.random.default_rng([SEED, 9])
    for n in QUERIES:
        found = []
        for table in draws(world, n, sets):
            drop = finds_drop(table[:, 1] - table[:, 0], table[:, 0], ALLOWED, alpha=ALPHA / contenders)
            fresh = world.draw(rng, n)
            if drop is None:
                continue
            failing = rng.random(n) < drop / max(float(world.means[1]), drop)
            after = np.where(failing, 0.0, fresh[:, 1])
            others = [world.draw(rng, n) for _ in range(contenders - 1)]
            p = [
                assess_drop(d, ALLOWED).p for d in (after - fresh[:, 0], *(each[:, 1] - each[:, 0] for each in others))
            ]
            found.append(holm(p)[0] <= ALPHA)
        rates.append(float(np.mean(found)) if found else float("nan"))
    claim = "a drop that the gate says it finds is found"
    return Line(claim, f"{world.name}, {contenders} changed", 2, QUERIES, rates, sets, at_least=0.7, at_most=0.9)
