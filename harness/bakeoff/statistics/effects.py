"""Effect sizes, and the agreement of two orders of contenders."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from bakeoff.statistics.columns import spread
from bakeoff.statistics.constants import NOISE


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
