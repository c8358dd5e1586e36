"""Worlds whose truth is known: scores of k rows on any number of queries, drawn at random.

Some are made from NDCG@10 of eight real rows on SciFact (scifact.csv: ties, 15 to 51% zeros, 25 to 56% ones), others by
formula. They were fixed before the methods that are held to them. A method that fails in one is to be mended, not the
world.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist

import numpy as np
from bakeoff.core.arrays import Values
from bakeoff.statistics.stratified import ENDLESS, Strata, linearise
from numpy.random import Generator
from numpy.typing import NDArray

ROWS = (3, 8, 20, 60)
QUERIES = (20, 50, 100, 300)
RARE = (0.02, 0.05, 0.1)  # shares of queries on which a row fails
LEAD = 0.002  # of a best row over rivals that look better
TRAFFIC = ((0.5, 0.7), (0.2, 0.8), (0.1, 0.5))  # shares of the queries, and of the traffic that they stand for
CLUSTERS = ((2,), (1, 1, 1, 5))  # numbers of queries that ask for the same thing
REPEATED = 0.7  # of the queries of a cluster: they score as its first one does
_MAKER = 2026  # seed of what belongs to a world and not to a draw

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class World:
    """The rows' true means, and `draw(rng, n)`: a table of n queries × rows.

    `heaviest` is what the query with the largest share counts for, where a plain one counts for 1.
    """

    name: str
    means: Values
    draw: Callable[[Generator, int], Values]
    heaviest: float = 1.0


@cache
def scifact() -> Values:
    """300 queries × 8 rows."""
    with Path(__file__).with_name("scifact.csv").open(encoding="utf-8", newline="") as file:
        return np.array(list(csv.reader(file))[1:], dtype=np.float64)


def real_rows(k: int) -> Values:
    """300 queries × k rows; from the ninth on a row has, by query, the score of one of two real rows."""
    real, rng = scifact(), np.random.default_rng(_MAKER)
    columns = list(real.T)
    while len(columns) < k:
        one, other = rng.choice(real.shape[1], 2, replace=False)
        columns.append(np.where(rng.random(len(real)) < rng.random(), real[:, one], real[:, other]))
    return np.stack(columns[:k], axis=1)


def as_measured(k: int) -> World:
    """Rows as they are."""
    rows = real_rows(k)
    return _at_means("as measured", rows, rows.mean(axis=0))


def equal_means(k: int) -> World:
    """Real rows, brought to one mean by queries on which a row scores as the best or the worst one does."""
    rows = real_rows(k)
    return _at_means("equal means", rows, np.full(k, np.median(real_rows(8).mean(axis=0))))


def equal_means_by_failures(k: int) -> World:
    """Real rows, brought to the mean of the worst by failures."""
    rows = real_rows(k)
    worst = rows.mean(axis=0).min()

    def draw(rng: Generator, n: int) -> Values:
        return _failing(rng, rows[rng.integers(len(rows), size=n)], 1 - worst / rows.mean(axis=0))

    return World("equal means by failures", np.full(k, worst), draw)


def spread_means(k: int, sd: float) -> World:
    """Real rows whose true means are spread normally: the leader of a draw is selected, and often not the best."""
    quantiles = np.array([NormalDist().inv_cdf((at + 0.5) / k) for at in range(k)])
    levels = real_rows(8).mean(axis=0)
    centre = min(float(np.median(levels)), float(levels.max()) - sd * quantiles.max())
    return _at_means(f"means spread by {sd}", real_rows(k), centre - sd * quantiles)


def one_better(k: int, gap: float) -> World:
    """Real rows at one mean, but for the second row."""
    targets = np.full(k, np.median(real_rows(8).mean(axis=0)))
    targets[1] += gap
    return _at_means(f"one row {gap} better", real_rows(k), targets)


def duplicates(k: int) -> World:
    """A third are copies of one row; the rest differ from it on one query in ten, without being better or worse."""
    column = real_rows(1)[:, 0]
    changed = np.where(np.arange(k) < -(-k // 3), 0.0, 0.1)

    def draw(rng: Generator, n: int) -> Values:
        same = rng.choice(column, (n, 1))
        return np.where(rng.random((n, k)) < changed, rng.choice(column, (n, k)), same)

    return World("duplicates", np.full(k, column.mean()), draw)


def rare_failures(k: int, share: float) -> World:
    """Every row scores 0.85 to 1 and fails on a share of queries: all are equal."""

    def draw(rng: Generator, n: int) -> Values:
        return _failing(rng, rng.uniform(0.85, 1, (n, k)), share)

    return World(f"{share:.0%} failures, equal", np.full(k, 0.925 * (1 - share)), draw)


def hidden_failures(k: int, share: float) -> World:
    """The best never fails; its rivals score more on all queries but the few on which they fail."""
    rivals = 0.925 * (1 - share)

    def draw(rng: Generator, n: int) -> Values:
        best = rivals + LEAD + rng.uniform(-0.05, 0.05, (n, 1))
        return np.hstack((best, _failing(rng, rng.uniform(0.85, 1, (n, k - 1)), share)))

    return World(f"{share:.0%} hidden failures", np.append(rivals + LEAD, np.full(k - 1, rivals)), draw)


def hidden_failures_among_ties(k: int, share: float) -> World:
    """The same with a real row's zeros and ones: rivals differ on one query in ten and score a little more."""
    column = real_rows(1)[:, 0]
    mean, rivals = column.mean(), column.mean() * (1 - share)

    def draw(rng: Generator, n: int) -> Values:
        same = rng.choice(column, (n, 1))
        others = np.where(rng.random((n, k - 1)) < 0.1, rng.choice(column, (n, k - 1)), same)
        return np.hstack((same * (rivals + LEAD) / mean, _failing(rng, others, share)))

    return World(f"{share:.0%} hidden failures, ties", np.append(rivals + LEAD, np.full(k - 1, rivals)), draw)


def lucky_leaders(k: int, share: float) -> World:
    """The best never fails; rivals score 0.02 more but fail, so that whoever of them shows no failure leads."""

    def draw(rng: Generator, n: int) -> Values:
        return np.hstack((rng.uniform(0.85, 0.95, (n, 1)), _failing(rng, rng.uniform(0.87, 0.97, (n, k - 1)), share)))

    return World(f"{share:.0%} failures of lucky leaders", np.append(0.9, np.full(k - 1, 0.92 * (1 - share))), draw)


def skewed(k: int, *, rare_gains: bool = False) -> World:
    """Differences of +0.02 on most queries and −0.38 on one in twenty, or the reverse; the first row is the best."""
    usual, seldom = (-0.02, 0.38) if rare_gains else (0.02, -0.38)

    def draw(rng: Generator, n: int) -> Values:
        best = rng.uniform(0.4, 0.6, (n, 1))
        moved = np.where(rng.random((n, k - 1)) < 0.05, seldom, usual) + rng.uniform(-0.01, 0.01, (n, k - 1))
        return np.hstack((best, best + moved - LEAD))

    return World(
        f"skewed, rare {'gains' if rare_gains else 'losses'}", np.append(0.5, np.full(k - 1, 0.5 - LEAD)), draw
    )


def with_poor_rows(world: World, count: int = 10, worse: float = 0.3) -> World:
    """The same rows, draw for draw, and behind them some that are that much worse than the best."""
    target = max(float(world.means.max()) - worse, 0.0)
    poor = _at_means("poor", real_rows(count), np.full(count, target))

    def draw(rng: Generator, n: int) -> Values:
        table = world.draw(rng, n)
        return np.hstack((table, poor.draw(rng, n)))

    return World(f"{world.name}, {count} poor rows", np.append(world.means, poor.means), draw)


def loss_by_failures(loss: float, *, ties: bool) -> World:
    """A row and one that loses so much by failures alone, beside a jitter that costs nothing."""
    column = real_rows(1)[:, 0] if ties else np.linspace(0.85, 1, 301)
    mean = float(column.mean())

    def draw(rng: Generator, n: int) -> Values:
        same = rng.choice(column, n)
        jitter = rng.uniform(-1, 1, n) * np.minimum(0.01, np.minimum(same, 1 - same))
        return np.stack((same, _failing(rng, (same + jitter)[:, None], loss / mean)[:, 0]), axis=1)

    return World(f"loses {loss} by failures{', ties' if ties else ''}", np.array([mean, mean - loss]), draw)


def tilted(pair: Values, gap: float) -> World:
    """Two real rows, whose queries are weighted by exp(λ · difference) so that the first is better by the gap.

    That keeps ties and which differences there are.
    """
    differences = pair[:, 0] - pair[:, 1]
    if not differences.min() < gap < differences.max():
        raise ValueError(f"no tilt gives a gap of {gap:.3f}")
    low, high = -200.0, 200.0
    weights = np.full(len(pair), 1 / len(pair))
    for _ in range(80):
        middle = (low + high) / 2
        weights = np.exp(middle * differences - np.max(middle * differences))
        weights /= weights.sum()
        low, high = (middle, high) if weights @ differences < gap else (low, middle)

    def draw(rng: Generator, n: int) -> Values:
        return pair[rng.choice(len(pair), n, p=weights)]

    return World(f"tilted to {gap:.3g}", weights @ pair, draw)


def failing_rival(pair: Values, gap: float) -> World:
    """Two real rows of equal mean, of which the second fails as often as makes it worse by the gap."""
    means = pair.mean(axis=0)
    target = means.min()
    failures = 1 - np.array([target, max(target - gap, 0.0)]) / means

    def draw(rng: Generator, n: int) -> Values:
        return _failing(rng, pair[rng.integers(len(pair), size=n)], failures)

    return World(f"fails until {gap} behind", means * (1 - failures), draw)


def by_traffic(world: World, share: float = 0.5, traffic: float = 0.7) -> World:
    """The same rows, where a share of the queries stands for so much traffic; scores are made alike to plain ones."""

    def draw(rng: Generator, n: int) -> Values:
        head = np.arange(n) < round(share * n)
        weights = np.where(head, traffic / head.sum(), (1 - traffic) / (~head).sum())
        strata = Strata(weights, np.where(head, "head", "tail").tolist(), [1_000_000] * n)
        return np.stack([linearise(scores, strata) for scores in world.draw(rng, n).T], axis=1)

    return World(f"{world.name}, {traffic:.0%} of traffic on {share:.0%}", world.means, draw, traffic / share)


def in_clusters(world: World, sizes: Sequence[int]) -> World:
    """The same rows in clusters of such sizes in turn, of whose queries seven in ten score as the first one does.

    A draw has as many clusters as queries were asked for; scores are made alike to plain ones.
    """

    def draw(rng: Generator, n: int) -> Values:
        names = np.repeat(np.arange(n), np.resize(sizes, n))
        firsts, own = world.draw(rng, n), world.draw(rng, len(names))
        scores = np.where(rng.random((len(names), 1)) < REPEATED, firsts[names], own)
        total = len(names)
        strata = Strata(np.full(total, 1 / total), [""] * total, [ENDLESS] * total, names.astype(str).tolist())
        return np.stack([linearise(column, strata) for column in scores.T], axis=1)

    name = f"{world.name}, clusters of {', '.join(map(str, sizes))}"
    return World(name, world.means, draw, max(sizes) * len(sizes) / sum(sizes))


def confidence_worlds(k: int) -> list[World]:
    """Those in which a set of the best, an incumbent's bounds and intervals are tested."""
    return [
        as_measured(k),
        equal_means(k),
        equal_means_by_failures(k),
        spread_means(k, 0.02),
        spread_means(k, 0.05),
        duplicates(k),
        *(rare_failures(k, share) for share in RARE),
        *(hidden_failures(k, share) for share in RARE),
        *(hidden_failures_among_ties(k, share) for share in RARE),
        *(lucky_leaders(k, share) for share in RARE[1:]),
        skewed(k),
        skewed(k, rare_gains=True),
    ]


def _at_means(name: str, rows: Values, targets: Values) -> World:
    """By query and at random a row scores as the best one or the worst one does, or 0, as often as its target takes."""
    everything = np.column_stack((real_rows(8), np.zeros(len(rows))))
    levels, means = everything.mean(axis=0), rows.mean(axis=0)
    if (targets > np.maximum(means, levels.max()) + 1e-12).any():
        raise ValueError(f"no real row has a mean of {targets.max():.3f}")
    best, worst, nothing = int(levels.argmax()), int(levels[:-1].argmin()), len(levels) - 1
    towards = np.where(targets > means, best, np.where(targets >= levels[worst], worst, nothing))
    apart = levels[towards] - means
    shares = np.divide(targets - means, apart, out=np.zeros(len(means)), where=np.abs(targets - means) > 1e-12)

    def draw(rng: Generator, n: int) -> Values:
        drawn = rng.integers(len(rows), size=n)
        return np.where(rng.random((n, len(means))) < shares, everything[drawn][:, towards], rows[drawn])

    return World(name, means + shares * apart, draw)


def _failing(rng: Generator, table: Values, shares: float | Values) -> Values:
    """The same scores with 0 on a share of queries, each row for itself."""
    return np.where(rng.random(table.shape) < shares, 0.0, table)
