"""What every row of the table shares: its figures, its seed, its share of the time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Figure:
    """One line of the table: what was counted, and the most that it may be."""

    what: str
    seen: float
    at_most: float = 0.0
    detail: str = ""

    @property
    def missed(self) -> bool:
        """Whether something got through."""
        return not self.seen <= self.at_most


@dataclass(frozen=True)
class Plan:
    """The seed, when to stop, and how many attempts are made at the same time."""

    seed: int
    until: float = float("inf")
    jobs: int = 2

    def rng(self, row: str, number: int) -> random.Random:
        """Each attempt has its own, so that none depends on those before it."""
        return random.Random(f"{self.seed}-{row}-{number}")

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self.until


def attempts(plan: Plan, row: str, count: int, attempt: Callable[[int, random.Random], T]) -> tuple[list[T], Figure]:
    """So many attempts, a few at once. Those that the time did not suffice for are a miss of their own."""

    def one(number: int) -> T | None:
        return None if plan.over else attempt(number, plan.rng(row, number))

    with ThreadPoolExecutor(plan.jobs) as pool:
        results = [result for result in pool.map(one, range(count)) if result is not None]
    return results, not_made(row, count - len(results))


def not_made(row: str, number: int) -> Figure:
    """What a time limit cut off must be seen."""
    return Figure(f"{row}: attempts not made, the time was up", number)
