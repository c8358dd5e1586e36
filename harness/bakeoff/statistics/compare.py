"""Pairs of contenders: differences, effects, equivalence, intervals and p-values."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from bakeoff.core.arrays import Values
from bakeoff.core.figures import PairedDifference
from bakeoff.statistics.columns import Pairs, differences_of, spread, table_of, without_noise
from bakeoff.statistics.constants import ALPHA, NOISE
from bakeoff.statistics.guarded import WORST, Differences, equivalence_p, guard_differences
from bakeoff.statistics.small_samples import doubt
from bakeoff.statistics.tests import holm_of_distinct, holm_of_pairs, hypothesis_of, t_test, wilcoxon


def effect_size(differences: ArrayLike) -> float:
    """Cohen's d_z: the mean difference in standard deviations; infinite if all queries differ equally."""
    d = np.asarray(differences, dtype=np.float64)
    mean, sd = float(d.mean()), spread(d)
    if mean == 0:
        return 0.0
    return mean / sd if sd > 0 else math.copysign(math.inf, mean)


def wins_ties_losses(differences: ArrayLike) -> tuple[int, int, int]:
    """The number of queries on which the first contender is better, equal, worse."""
    d = np.asarray(differences, dtype=np.float64)
    wins, losses = int(np.count_nonzero(d > NOISE)), int(np.count_nonzero(d < -NOISE))
    return wins, len(d) - wins - losses, losses


def kendall_tau(a: ArrayLike, b: ArrayLike) -> float:
    """Kendall's tau-b between two scorings of the same contenders; NaN if one is all ties."""
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    upper = np.triu_indices(len(x), 1)
    dx, dy = (np.sign(np.subtract.outer(v, v)[upper]) for v in (x, y))
    untied = np.count_nonzero(dx) * np.count_nonzero(dy)
    return float((dx * dy).sum() / math.sqrt(untied)) if untied else math.nan


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


Relation = Literal["better", "worse", "equivalent", "undecided"]


def equivalence_tests(differences: Sequence[Values], margin: float, *, worst: float | None = WORST) -> Values:
    """The Holm-adjusted p of each pair. Equal differences are one hypothesis."""
    p = [equivalence_p(d, margin, worst=worst) for d in differences]
    return holm_of_distinct(p, [hypothesis_of(d) or b"" for d in differences])


def relation(difference: float, p: float, p_equivalent: float | None, alpha: float = ALPHA) -> Relation:
    """The relation of a pair. A difference within the margin is equivalence, even if it is significant."""
    if p_equivalent is not None and p_equivalent <= alpha:
        return "equivalent"
    if p <= alpha:
        return "better" if difference > 0 else "worse"
    return "undecided"


STEPS = 60  # bisection steps


@dataclass(frozen=True, slots=True)
class Drop:
    """`p` of a drop no larger than allowed; the true drop is at least `least` and at most `most`."""

    p: float
    least: float
    most: float
    most_seen: float  # assuming no failures beyond the observed ones


def assess_drop(differences: Values, allowed: float, *, alpha: float = ALPHA, imagined: float | None = None) -> Drop:
    """Student's one-sided test of after minus before, per query. Each bound has level 1 − alpha.

    `imagined` adds a query to `most` only, since n queries can't rule out failures that none of them shows.
    """
    d = without_noise(np.asarray(differences, dtype=np.float64))
    worst = d if imagined is None else np.append(d, imagined)
    return Drop(_p_dropped(d, allowed), -_ends(d, alpha)[1], -_ends(worst, alpha)[0], -_ends(d, alpha)[0])


def _p_dropped(d: Values, allowed: float) -> float:
    from scipy.special import stdtr

    if len(d) < 2:
        return 1.0
    error = float(d.std(ddof=1)) / math.sqrt(len(d))
    room = float(d.mean()) + allowed
    if np.ptp(d) == 0:  # as if each query were equally likely to gain or lose
        return 0.5 ** len(d) if room < 0 else 1.0
    return float(stdtr(len(d) - 1, room / error))


def _ends(d: Values, alpha: float) -> tuple[float, float]:
    from scipy.special import stdtrit

    if len(d) < 2:
        return -math.inf, math.inf
    half = float(stdtrit(len(d) - 1, 1 - alpha)) * float(d.std(ddof=1)) / math.sqrt(len(d))
    return float(d.mean()) - half, float(d.mean()) + half


def finds_drop(
    differences: Values, before: Values, allowed: float, *, alpha: float = ALPHA, power: float = 0.8
) -> float | None:
    """The true drop that is shown to exceed the allowed one with this power; None if there is none.

    The drop comes from queries that score 0, added to the observed differences. So it has a spread even if
    nothing has changed yet. `before` are scores of 0 or more.
    """
    from scipy.special import ndtri, stdtrit

    n, mean = len(differences), float(before.mean())
    if n < 2 or mean <= 0:
        return None
    bar = float(stdtrit(n - 1, 1 - alpha)) + float(ndtri(power))
    spread, cost = float(np.var(differences, ddof=1)), float((before**2).mean()) / mean

    def is_shown(drop: float) -> bool:
        return drop - allowed >= bar * math.sqrt((spread + drop * cost - drop**2) / n)

    low, high = allowed, mean
    if high <= low or not is_shown(high):
        return None
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_shown(middle) else (middle, high)
    return high
