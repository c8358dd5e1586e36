"""BCa of a single sample, for tests that need no table."""

from __future__ import annotations

import numpy as np
from bakeoff.statistics.intervals import RESAMPLES, bca_intervals
from numpy.typing import ArrayLike


def bca_of_mean(values: ArrayLike, level: float = 0.95, resamples: int = RESAMPLES) -> tuple[float, float]:
    (low,), (high,) = bca_intervals(np.asarray(values, dtype=np.float64)[:, None], level=level, resamples=resamples)
    return float(low), float(high)
