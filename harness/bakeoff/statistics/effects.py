"""How large a difference is, and how far two orders of the contenders agree."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from bakeoff.statistics.columns import spread
from bakeoff.statistics.constants import NOISE


def effect_size(differences: ArrayLike) -> float:
    """Cohen's d_z: the mean difference in its standard deviations; infinite where every query differs alike."""
    d = np.asarray(differences, dtype=np.float64)
    mean, sd = float(d.mean()), spread(d)
    if mean == 0:
        return 0.0
    return mean / sd if sd > 0 else math.copysign(math.inf, mean)


def wins_ties_losses(differences: ArrayLike) -> tuple[int, int, int]:
    """On how many queries the first contender is better, equal, worse."""
    d = np.asarray(differences, dtype=np.float64)
    wins, losses = int(np.count_nonzero(d > NOISE)), int(np.count_nonzero(d < -NOISE))
    return wins, len(d) - wins - losses, losses


def kendall_tau(a: ArrayLike, b: ArrayLike) -> float:
    """Agreement (tau-b) of two scorings of the same contenders, in the same order; NaN where one is all ties."""
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    upper = np.triu_indices(len(x), 1)
    dx, dy = (np.sign(np.subtract.outer(v, v)[upper]) for v in (x, y))
    untied = np.count_nonzero(dx) * np.count_nonzero(dy)
    return float((dx * dy).sum() / math.sqrt(untied)) if untied else math.nan
