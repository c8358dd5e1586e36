"""One line per claim and world: what was promised and how often it held."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

CHANCE = 0.02  # that a claim is called missed in the summary though it holds in every world
HEAD = ("claim", "world", "rows", "queries", "promised", "measured", "data sets")


@dataclass(frozen=True, slots=True)
class Line:
    """What was measured at each number of queries, over so many data sets each; a `share` has a standard error."""

    claim: str
    world: str
    rows: int
    queries: Sequence[int]
    measured: Sequence[float]
    sets: int
    at_least: float | None = None
    at_most: float | None = None
    share: bool = True

    @property
    def promised(self) -> str:
        """In words."""
        low = "" if self.at_least is None else f"≥ {self.at_least:.3g}"
        high = "" if self.at_most is None else f"≤ {self.at_most:.3g}"
        return " ".join(filter(None, (low, high))) or "–"

    @property
    def missed(self) -> list[int]:
        """Numbers of queries at which the promise was missed by more than two standard errors."""
        return self.missed_by(2.0)

    def missed_by(self, errors: float) -> list[int]:
        """Numbers of queries at which the promise was missed by more than so many standard errors."""
        return [n for n, value in zip(self.queries, self.measured, strict=True) if self._missed(value, errors)]

    @property
    def room(self) -> float:
        """What is left to the bounds of the promise, where it is least."""
        rooms = [
            side * (value - bound)
            for value in self.measured
            for side, bound in ((1, self.at_least), (-1, self.at_most))
            if bound is not None and value == value
        ]
        return min(rooms, default=math.inf)

    def _missed(self, value: float, errors: float) -> bool:
        if value != value:
            return False
        return any(
            side * (bound - value) > (errors * math.sqrt(bound * (1 - bound) / self.sets) if self.share else 0.0)
            for side, bound in ((1, self.at_least), (-1, self.at_most))
            if bound is not None
        )

    def cells(self, errors: float = 2.0) -> tuple[str, ...]:
        """As the table shows it."""
        values = " ".join("–" if value != value else f"{value:.3f}" for value in self.measured)
        queries = " ".join(map(str, self.queries))
        off = self.missed_by(errors)
        missed = f"  MISSED at {', '.join(map(str, off))}" if off else ""
        return self.claim, self.world, str(self.rows), queries, self.promised, values + missed, str(self.sets)


def hardest_of(lines: Iterable[Line]) -> list[tuple[Line, int]]:
    """For each claim that promises something, the line that comes closest to breaking it, and of how many."""
    by_claim: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if line.at_least is not None or line.at_most is not None:
            by_claim.setdefault((line.claim, line.promised), []).append(line)
    return [(min(several, key=lambda line: line.room), len(several)) for several in by_claim.values()]


Simulation = Callable[[float], Iterable[Line]]


def print_table(lines: Iterable[Line]) -> int:
    """Prints each line as soon as it is known; returns how many missed their promise."""
    missed = 0
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD), flush=True)
    for line in lines:
        missed += bool(line.missed)
        print("| " + " | ".join(line.cells()) + " |", flush=True)
    return missed


def print_summary(lines: Iterable[Line]) -> int:
    """Prints each claim in its hardest world; returns how many of these missed their promise.

    The hardest of many looks worse than it is, so it counts as missed only where chance seldom makes one of so many so.
    """
    missed = 0
    print("| claim | hardest world | promised | measured |\n|---|---|---|---|")
    for line, of in hardest_of(list(lines)):
        errors = max(2.0, NormalDist().inv_cdf(1 - CHANCE / (of * len(line.queries))))
        missed += bool(line.missed_by(errors))
        claim, world, rows, queries, promised, measured, sets = line.cells(errors)
        several = f", of {of}" if of > 1 else ""
        print(f"| {claim} | {world}; {rows} rows; {queries}{several} | {promised} | {measured} ({sets}) |")
    return missed
