"""Scores × Scores → differences, intervals and p-values of pairs of contenders, and who ties with the best."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from bakeoff.core.arrays import Values
from bakeoff.core.figures import PairedDifference
from bakeoff.statistics.columns import Pairs, differences_of, table_of
from bakeoff.statistics.constants import ALPHA, SEED
from bakeoff.statistics.effects import effect_size, wins_ties_losses
from bakeoff.statistics.holm_power import HolmPower
from bakeoff.statistics.intervals import RESAMPLES
from bakeoff.statistics.many_pairs import MANY_PAIRS, pair_tests
from bakeoff.statistics.small_samples import difference_intervals, doubt
from bakeoff.statistics.tests import (
    FLIPS,
    first_equal,
    holm_of_distinct,
    holm_of_pairs,
    hypothesis_of,
    paired_t,
    wilcoxon,
)
from bakeoff.statistics.ties import separated_from

SIMULATED_PAIRS = 400  # that stand for all, where there are very many


def compare(
    scores: Mapping[str, ArrayLike],
    *,
    bounded: bool = True,
    level: float = 0.95,
    flips: int = FLIPS,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> list[PairedDifference]:
    """Every pair of contenders, in the order they are given; Holm's correction is over all distinct ones.

    `bounded` says that scores are from 0 to 1.
    """
    return _compared(
        scores, lambda _table, pairs: pairs, bounded=bounded, level=level, flips=flips, resamples=resamples, seed=seed
    )


def compare_nearest(
    scores: Mapping[str, ArrayLike], among: Collection[str] | None = None, *, bounded: bool = True, seed: int = SEED
) -> list[PairedDifference]:
    """Every pair among these; else those with the best and those of neighbours by mean, where there are very many.

    All are tested, and Holm's correction is over all; intervals are worked out for what a reader looks at.
    """
    names = list(scores)

    def chosen(table: Values, pairs: Pairs) -> Pairs:
        return shown_pairs(names, table.mean(axis=0), pairs, among)

    return _compared(scores, chosen, bounded=bounded, seed=seed)


def shown_pairs(names: Sequence[str], means: Values, pairs: Pairs, among: Collection[str] | None) -> Pairs:
    """The pairs of the named; where nobody is named, all, or of very many the nearest."""
    if among is None:
        return nearest_pairs(means, pairs)
    return [(i, j) for i, j in pairs if names[i] in among and names[j] in among]


def nearest_pairs(means: Values, pairs: Pairs) -> Pairs:
    """All pairs; of very many, those with the best and those of neighbours by mean."""
    if len(pairs) <= MANY_PAIRS:
        return pairs
    order = np.argsort(-means, kind="stable")
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    best = int(np.argmax(means))
    return [(i, j) for i, j in pairs if best in (i, j) or abs(place[i] - place[j]) == 1]


def _compared(
    scores: Mapping[str, ArrayLike],
    choose: Callable[[Values, Pairs], Pairs],
    *,
    bounded: bool = True,
    level: float = 0.95,
    flips: int = FLIPS,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> list[PairedDifference]:
    names, table = list(scores), table_of(list(scores.values()))
    indices = list(combinations(range(len(names)), 2))
    if not indices:
        return []
    p = pair_tests(table, indices, flips=flips, seed=seed)
    adjusted = holm_of_pairs(p, table, indices)
    chosen = choose(table, indices)
    if not chosen:
        return []
    number = {pair: at for at, pair in enumerate(indices)}
    low, high = difference_intervals(table, chosen, bounded=bounded, level=level, resamples=resamples, seed=seed)
    pairs = []
    for at, (i, j) in enumerate(chosen):
        d = differences_of(table[:, i], table[:, j])
        wins, ties, losses = wins_ties_losses(d)
        pair = number[i, j]
        pairs.append(
            PairedDifference(
                a=names[i], b=names[j], difference=float(d.mean()), low=_finite(low[at]), high=_finite(high[at]),
                p=float(p[pair]), p_holm=float(adjusted[pair]), t_p=paired_t(d), wilcoxon_p=wilcoxon(d),
                effect=_finite(effect_size(d)), wins=wins, ties=ties, losses=losses, doubt=doubt(d),
            )
        )  # fmt: skip
    return pairs


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def tie_group(means: Mapping[str, float], pairs: Sequence[PairedDifference], alpha: float = ALPHA) -> list[str]:
    """The best contender and those that can't be told from it, best mean first."""
    if not means:
        return []
    best = max(means, key=lambda name: means[name])
    worse = separated_from(best, ((pair.a, pair.b, pair.p_holm) for pair in pairs), alpha)
    return sorted((name for name in means if name not in worse), key=lambda name: -means[name])


def compare_chosen(
    scores: Mapping[str, Values],
    chosen: Sequence[tuple[str, str]],
    compared: Callable[[Mapping[str, Values]], list[PairedDifference]] = compare,
) -> list[PairedDifference]:
    """The chosen pairs only, each compared alone: Holm's correction is over the distinct ones of these."""
    pairs = [compared({a: scores[a], b: scores[b]})[0] for a, b in chosen]
    asked = [hypothesis_of(differences_of(scores[a], scores[b])) for a, b in chosen]
    adjusted = holm_of_distinct([pair.p for pair in pairs], asked)
    return [msgspec.structs.replace(pair, p_holm=float(p)) for pair, p in zip(pairs, adjusted, strict=True)]


def tied_with_best(scores: Mapping[str, Values], seed: int) -> dict[str, bool]:
    """For each contender, whether it can't be told from the best on this measure; the best itself is True."""
    names, table = list(scores), np.stack(list(scores.values()), axis=1) if scores else np.empty((0, 0))
    indices = list(combinations(range(len(names)), 2))
    if not indices:
        return dict.fromkeys(names, True)
    adjusted = holm_of_pairs(pair_tests(table, indices, seed=seed), table, indices)
    return tied_pairs(names, table.mean(axis=0), indices, adjusted)


def tied_pairs(names: Sequence[str], means: Values, indices: Pairs, adjusted: Values) -> dict[str, bool]:
    """For each contender, whether no adjusted p separates it from the one with the best mean."""
    best = int(np.argmax(means))
    separated = separated_from(best, ((i, j, float(p)) for (i, j), p in zip(indices, adjusted, strict=True)))
    return {name: at not in separated for at, name in enumerate(names)}


class Outlook(msgspec.Struct, frozen=True):
    """What these queries can tell of the best and its nearest rival, after Holm's step over so many `pairs`.

    `detectable` is the true difference that is found in 4 of 5 cases; `more` the queries that the gap they have now
    still needs for as much, 0 where there are enough, None where no number would do.
    """

    rival: str
    pairs: int
    detectable: float
    more: int | None


def outlook(scores: Mapping[str, Values], best: str | None, seed: int = SEED) -> Outlook | None:
    """For the contender with the next best mean that differs from the best anywhere; None where there is none."""
    if best is None or len(scores[best]) < 2:
        return None
    names, table = list(scores), np.stack(list(scores.values()), axis=1)
    same = first_equal(table)
    mine = same[names.index(best)]
    rivals = [at for at in sorted(set(same)) if at != mine]
    if not rivals:
        return None
    nearest = max(rivals, key=lambda at: float(table[:, at].mean()))
    pairs = [(i, j) for i, j in combinations(sorted(set(same)), 2) if {i, j} != {mine, nearest}]
    tested = len(pairs) + 1
    if tested > MANY_PAIRS:  # Holm's steps are simulated with an even share of them
        drawn = np.random.default_rng(seed).choice(len(pairs), SIMULATED_PAIRS, replace=False)
        pairs = [pairs[at] for at in np.sort(drawn)]
    power = HolmPower(table, [(mine, nearest), *pairs], seed=seed, tested=tested)
    return Outlook(names[nearest], tested, power.detectable(0), power.more_queries(0))
