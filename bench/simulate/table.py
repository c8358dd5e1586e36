"""One line per claim and world: what was promised and how often it held."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

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
        return [n for n, value in zip(self.queries, self.measured, strict=True) if self._missed(value)]

    def _missed(self, value: float) -> bool:
        if value != value:
            return False
        return any(
            side * (bound - value) > (2 * sqrt(bound * (1 - bound) / self.sets) if self.share else 0.0)
            for side, bound in ((1, self.at_least), (-1, self.at_most))
            if bound is not None
        )

    def cells(self) -> tuple[str, ...]:
        """As the table shows it."""
        values = " ".join("–" if value != value else f"{value:.3f}" for value in self.measured)
        queries = " ".join(map(str, self.queries))
        missed = f"  MISSED at {', '.join(map(str, self.missed))}" if self.missed else ""
        return self.claim, self.world, str(self.rows), queries, self.promised, values + missed, str(self.sets)


Simulation = Callable[[float], Iterable[Line]]


def print_table(lines: Iterable[Line]) -> int:
    """Prints each line as soon as it is known; returns how many missed their promise."""
    missed = 0
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD), flush=True)
    for line in lines:
        missed += bool(line.missed)
        print("| " + " | ".join(line.cells()) + " |", flush=True)
    return missed
