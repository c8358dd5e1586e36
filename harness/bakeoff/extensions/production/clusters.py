"""Means over rows that come in clusters: one user's sessions resemble each other, so users are what is counted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bakeoff.core.arrays import Values


@dataclass(frozen=True, slots=True)
class Clusters:
    """Each user's sum of values and number of rows."""

    sums: Values
    rows: Values

    @classmethod
    def of(cls, users: Sequence[str], values: Sequence[float]) -> Clusters:
        """One cluster per user, in the order of their first row."""
        numbers: dict[str, int] = {}
        place = np.array([numbers.setdefault(user, len(numbers)) for user in users], dtype=np.int64)
        size = len(numbers)
        return cls(
            np.bincount(place, np.asarray(values, dtype=np.float64), size).astype(np.float64),
            np.bincount(place, minlength=size).astype(np.float64),
        )

    def __len__(self) -> int:
        return len(self.sums)

    @property
    def mean(self) -> float:
        """Over all rows: a user who came more often counts more often."""
        return float(self.sums.sum() / self.rows.sum())

    @property
    def influence(self) -> Values:
        """How far each user moves the mean, times the number of users: its spread is the mean's spread times √users."""
        moved: Values = (self.sums - self.mean * self.rows) / self.rows.mean()
        return moved

    @property
    def standard_error(self) -> float:
        """The delta method for a ratio of sums over users; infinite for a single one."""
        return float(self.influence.std(ddof=1) / math.sqrt(len(self))) if len(self) > 1 else math.inf
