"""Has a mean dropped by more than allowed? One-sided paired tests, and the drop that they detect."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.statistics.columns import without_noise
from bakeoff.statistics.constants import ALPHA

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
