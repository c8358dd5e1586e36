"""Queries × contenders as a table of columns, and differences of pairs of columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from bakeoff.core.arrays import Values
from bakeoff.statistics.constants import NOISE

DRAWS = 100_000_000  # signs in total: with very many queries, fewer repetitions suffice

Pairs = Sequence[tuple[int, int]]


def table_of(values: Sequence[ArrayLike]) -> Values:
    """One column per contender. All must have a finite score for each of the same queries."""
    arrays = [np.asarray(column, dtype=np.float64) for column in values]
    if len({array.shape for array in arrays}) > 1 or any(array.ndim != 1 or not len(array) for array in arrays):
        raise ValueError("contenders must have one score for each of the same queries")
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError("a score is not a finite number")
    return np.stack(arrays, axis=1) if arrays else np.empty((0, 0))


def across(rows: Values, pairs: Pairs | None) -> Values:
    """The difference of each pair of rows, or the rows themselves."""
    if pairs is None:
        return rows
    left, right = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    return rows[left] - rows[right]


def differences_of(a: ArrayLike, b: ArrayLike) -> Values:
    """a − b per query, without rounding noise, so that ties are ties in every test."""
    return without_noise(np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64))


def without_noise(differences: Values) -> Values:
    """Exactly 0 if two scores differ only by rounding."""
    return np.where(np.abs(differences) <= NOISE, 0.0, differences)


def spread(values: Values) -> float:
    """The sample standard deviation, exactly 0 if values differ only by rounding."""
    if len(values) < 2 or np.ptp(values) <= NOISE:
        return 0.0
    return float(values.std(ddof=1))


def affordable(repetitions: int, queries: int, draws: int = DRAWS) -> int:
    """All repetitions up to a thousand queries; still a thousand for a hundred thousand queries."""
    return min(repetitions, max(1000, draws // max(queries, 1)))
