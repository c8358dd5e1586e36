"""What a number of queries can tell where several pairs are tested at once: power after Holm's step, by simulation.

Holm's step for a pair depends on how many other pairs are told apart before it, for which there is no formula. So the
contenders' means are drawn again and again from their own spread and covariance, every pair's t statistic is made from
them, and Holm's procedure is gone through. The sign-flip test finds as much as Student's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.statistics.columns import Pairs, across, without_noise
from bakeoff.statistics.constants import ALPHA, NOISE, SEED
from bakeoff.statistics.power import MOST_QUERIES, queries_needed, smallest_detectable

DRAWS = 2000
CELLS = 2_000_000  # draws × pairs at most: with very many pairs fewer draws say as much
STEPS = 14  # halvings of the interval in which the answer is looked for


@dataclass(frozen=True)
class HolmPower:
    """Pairs of columns (queries × contenders) that are tested together; without pairs, every column is a difference."""

    table: Values
    pairs: Pairs | None = None
    alpha: float = ALPHA
    seed: int = SEED
    tested: int = 0  # how many pairs there are in all, where `pairs` are a sample of them

    def detectable(self, target: int, power: float = 0.8) -> float:
        """The smallest true difference of this pair that these queries tell apart with this power; else infinite."""
        if len(self.table) < 2 or self._sds[target] == 0:
            return math.inf
        if self._differences.shape[1] == 1:
            return smallest_detectable(float(self._sds[0]), len(self.table), power, self.alpha)
        low, high = 0.0, self._sds[target] / math.sqrt(len(self.table))
        for _ in range(60):
            if self.power(target, high, len(self.table)) >= power:
                break
            low, high = high, 2 * high
        for _ in range(STEPS):
            middle = (low + high) / 2
            enough = self.power(target, middle, len(self.table)) >= power
            low, high = (low, middle) if enough else (middle, high)
        return float(high)

    def queries_needed(self, target: int, power: float = 0.8) -> int | None:
        """How many queries tell this pair apart if it differs by as much as it does now; None where no number does."""
        difference = abs(float(self._means[target]))
        if len(self.table) < 2 or difference <= NOISE or self._sds[target] == 0:
            return None
        if self._differences.shape[1] == 1:
            return queries_needed(difference, float(self._sds[0]), power, self.alpha)
        low, high = 1, 2
        while self.power(target, difference, high) < power:
            low, high = high, 2 * high
            if high > MOST_QUERIES:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.power(target, difference, middle) >= power else (middle, high)
        return high

    def more_queries(self, target: int, power: float = 0.8) -> int | None:
        """How many queries beyond these."""
        needed = self.queries_needed(target, power)
        return None if needed is None else max(0, needed - len(self.table))

    def power(self, target: int, difference: float, n: int) -> float:
        """How often n queries tell the pair apart where its true difference is this, and all else is as observed."""
        from scipy.special import stdtrit

        if n < 2:
            return 0.0
        sign = math.copysign(1.0, self._means[target])
        shift = sign * difference - self._means[target]
        means = self._means + shift * self._moved_with(target) + self._drawn / math.sqrt(n)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.nan_to_num(np.abs(means) / (self._sds * self._spread_of_sd(n) / math.sqrt(n)), posinf=np.inf)
        m = t.shape[1]
        steps = np.linspace(self.tested, 1, m) if self.tested > m else np.arange(m, 0, -1)
        bars = stdtrit(n - 1, 1 - self.alpha / 2 / steps)  # Holm's steps, the strictest first
        ordered = -np.sort(-t, axis=1)
        stopped = ordered < bars
        first = np.where(stopped.any(axis=1), stopped.argmax(axis=1), m)
        last = np.take_along_axis(np.pad(ordered, ((0, 0), (0, 1)), constant_values=-np.inf), first[:, None], axis=1)
        right_side = np.sign(means[:, target]) == sign
        return float(np.mean((t[:, target] > last[:, 0]) & right_side))

    @cached_property
    def _differences(self) -> Values:
        return without_noise(across(self.table.T, self.pairs)).T

    @cached_property
    def _means(self) -> Values:
        return np.asarray(self._differences.mean(axis=0), dtype=np.float64)

    @cached_property
    def _sds(self) -> Values:
        sds: Values = self._differences.std(axis=0, ddof=1)
        return np.where(sds <= NOISE, 0.0, sds)

    @cached_property
    def _normal(self) -> tuple[Values, Values]:
        rng = np.random.default_rng(self.seed)
        pairs = self._differences.shape[1]
        draws = int(min(DRAWS, max(500, CELLS // pairs)))
        return rng.standard_normal((draws, self.table.shape[1])), rng.standard_normal((draws, pairs))

    @cached_property
    def _drawn(self) -> Values:
        """Deviations of the mean differences, for a single query; contenders vary together as they do in the table."""
        values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(self.table, rowvar=False)))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return across((self._normal[0] @ root.T).T, self.pairs).T

    def _spread_of_sd(self, n: int) -> Values:
        """What n queries show of a standard deviation of 1: Wilson and Hilferty's approximation of χ²."""
        share = 2 / (9 * (n - 1))
        spread: Values = np.maximum(1 - share + self._normal[1] * math.sqrt(share), 0.05) ** 1.5
        return spread

    def _moved_with(self, target: int) -> Values:
        """By how much every difference moves while the target's grows by 1: its second contender is moved."""
        if self.pairs is None:
            return np.asarray(np.arange(self.table.shape[1]) == target, dtype=np.float64)
        at = self.pairs[target][1]
        return np.array([float(j == at) - float(i == at) for i, j in self.pairs])
