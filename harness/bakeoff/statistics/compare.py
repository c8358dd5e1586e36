"""Pairs of contenders: differences, intervals and p-values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from bakeoff.core.arrays import Values
from bakeoff.core.figures import PairedDifference
from bakeoff.statistics.columns import Pairs, differences_of, table_of
from bakeoff.statistics.effects import effect_size, wins_ties_losses
from bakeoff.statistics.guarded import Differences, guard_differences
from bakeoff.statistics.small_samples import doubt
from bakeoff.statistics.tests import holm_of_distinct, holm_of_pairs, hypothesis_of, t_test, wilcoxon

MANY_PAIRS = 1000  # up to this many, all pairs are shown


def compare(
    scores: Mapping[str, ArrayLike], among: Collection[str] | None = None, *, bounded: bool = True
) -> list[PairedDifference]:
    """Compares all pairs of these or, if there are very many, those with the best and neighbours by mean.

    All pairs are tested, and Holm's correction covers all distinct ones. `bounded` scores are from 0 to 1.
    """
    table = table_of(list(scores.values()))

    def pair(i: int, j: int) -> PairedDifference:
        d = differences_of(table[:, i], table[:, j])
        wins, ties, losses = wins_ties_losses(d)
        return PairedDifference(
            a="", b="", difference=float(d.mean()), low=None, high=None, p=1.0, p_holm=1.0, t_p=t_test(d),
            wilcoxon_p=wilcoxon(d), effect=finite(effect_size(d)), wins=wins, ties=ties, losses=losses, doubt=doubt(d),
        )  # fmt: skip

    def test(pairs: Pairs) -> Differences:
        return guard_differences(table, pairs, bounded=bounded)

    return compare_pairs(list(scores), table, table.mean(axis=0) if len(table) else table, among, pair, test)


def compare_pairs(
    names: Sequence[str],
    table: Values,
    means: Values,
    among: Collection[str] | None,
    describe: Callable[[int, int], PairedDifference],
    test: Callable[[Pairs], Differences],
) -> list[PairedDifference]:
    """Describes the selected pairs, with interval and p from a test over all pairs."""
    indices = list(combinations(range(len(names)), 2))
    if not indices:
        return []
    tested = test(indices)
    adjusted = holm_of_pairs(tested.p, table, indices)
    number = {pair: at for at, pair in enumerate(indices)}
    return [
        msgspec.structs.replace(
            describe(i, j), a=names[i], b=names[j], low=finite(tested.low[at]), high=finite(tested.high[at]),
            p=float(tested.p[at]), p_holm=float(adjusted[at]),
        )
        for i, j in select_pairs(names, means, indices, among)
        for at in [number[i, j]]
    ]  # fmt: skip


def select_pairs(names: Sequence[str], means: Values, pairs: Pairs, among: Collection[str] | None) -> Pairs:
    """The pairs among the named contenders; if none are named, all pairs or the nearest of very many."""
    if among is None:
        return nearest_pairs(means, pairs)
    return [(i, j) for i, j in pairs if names[i] in among and names[j] in among]


def nearest_pairs(means: Values, pairs: Pairs) -> Pairs:
    """All pairs; if there are very many, those with the best and neighbours by mean."""
    if len(pairs) <= MANY_PAIRS:
        return pairs
    order = np.argsort(-means, kind="stable")
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    best = int(np.argmax(means))
    return [(i, j) for i, j in pairs if best in (i, j) or abs(place[i] - place[j]) == 1]


def finite(value: float) -> float | None:
    """None if the value is not finite."""
    return float(value) if np.isfinite(value) else None


def compare_chosen(
    scores: Mapping[str, Values],
    chosen: Sequence[tuple[str, str]],
    compared: Callable[[Mapping[str, Values]], list[PairedDifference]] = compare,
) -> list[PairedDifference]:
    """Compares only the chosen pairs. Holm's correction covers the distinct ones."""
    pairs = [compared({a: scores[a], b: scores[b]})[0] for a, b in chosen]
    asked = [hypothesis_of(differences_of(scores[a], scores[b])) for a, b in chosen]
    adjusted = holm_of_distinct([pair.p for pair in pairs], asked)
    return [msgspec.structs.replace(pair, p_holm=float(p)) for pair, p in zip(pairs, adjusted, strict=True)]
