"""The simulated worlds have the truth that they claim, and are as hard as they claim."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from simulate import worlds

MANY = 40_000
PAIR = worlds.scifact()[:, :2]
EVERY = [
    *(world for k in (3, 20) for world in worlds.confidence_worlds(k)),
    worlds.with_poor_rows(worlds.as_measured(8)),
    worlds.with_poor_rows(worlds.equal_means(3)),
    *(worlds.loss_by_failures(loss, ties=ties) for loss in (0.02, 0.05, 0.1) for ties in (False, True)),
    worlds.one_better(8, 0.1),
    worlds.tilted(PAIR, 0.1),
    worlds.failing_rival(PAIR, 0.1),
]


@pytest.mark.parametrize("world", EVERY, ids=lambda world: f"{world.name} {len(world.means)}")
def test_means_over_very_many_queries_are_the_true_ones(world: worlds.World) -> None:
    table = world.draw(np.random.default_rng(1), MANY)
    assert table.shape == (MANY, len(world.means))
    assert table.min() >= 0
    assert table.max() <= 1
    off = np.abs(table.mean(axis=0) - world.means)
    assert (off <= 5 * table.std(axis=0) / np.sqrt(MANY) + 1e-9).all()


def test_real_rows_have_many_zeros_ones_and_ties() -> None:
    rows = worlds.scifact()
    assert rows.shape == (300, 8)
    assert ((rows == 0).mean(axis=0) >= 0.15).all()
    assert ((rows == 1).mean(axis=0) >= 0.2).all()
    first = worlds.equal_means(8).draw(np.random.default_rng(2), MANY)
    assert np.mean(first[:, 0] == first[:, 1]) > 0.3


@pytest.mark.parametrize("share", worlds.RARE)
@pytest.mark.parametrize("make", [worlds.hidden_failures, worlds.hidden_failures_among_ties])
def test_a_rival_with_hidden_failures_is_worse_and_scores_more_otherwise(
    make: Callable[[int, float], worlds.World], share: float
) -> None:
    world = make(3, share)
    assert world.means.argmax() == 0
    assert world.means[0] - world.means[1] == pytest.approx(worlds.LEAD)
    best, rival, _ = world.draw(np.random.default_rng(3), MANY).T
    failed = rival < 1e-9
    assert rival[~failed].mean() > best[~failed].mean()


def test_ten_poor_rows_leave_the_others_as_they_are() -> None:
    world = worlds.as_measured(8)
    rows = world.draw(np.random.default_rng(4), 50)
    more = worlds.with_poor_rows(world)
    np.testing.assert_array_equal(more.draw(np.random.default_rng(4), 50)[:, :8], rows)
    assert more.means[8:] == pytest.approx(world.means.max() - 0.3)


def test_exact_copies_are_copies() -> None:
    table = worlds.duplicates(8).draw(np.random.default_rng(5), 1000)
    assert (table[:, 0] == table[:, 1]).all()
    assert (table[:, 0] == table[:, 2]).all()
    assert 0.02 < (table[:, 0] != table[:, 7]).mean() < 0.1


def test_by_traffic_a_mean_is_that_of_weighted_queries() -> None:
    world = worlds.equal_means(3)
    plain = world.draw(np.random.default_rng(6), 40)
    weighted = 0.7 * plain[:20].mean(axis=0) + 0.3 * plain[20:].mean(axis=0)
    assert worlds.by_traffic(world).draw(np.random.default_rng(6), 40).mean(axis=0) == pytest.approx(weighted)
