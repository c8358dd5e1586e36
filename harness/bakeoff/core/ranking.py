"""The one order of every ranking: score descending, then id ascending. Stores and files never decide ties."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from bakeoff_providers.errors import InputError


@dataclass(frozen=True, slots=True)
class Ranking:
    """What one contender answered to one query: ids with their scores, best first.

    `matched` is set where a ranking was filled up: places behind it hold documents that matched nothing, by id.
    """

    ids: tuple[str, ...]
    scores: tuple[float, ...]
    matched: int | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def cut(self, depth: int) -> Ranking:
        """The first `depth` places."""
        return Ranking(self.ids[:depth], self.scores[:depth], self.matched)

    @property
    def found(self) -> tuple[str, ...]:
        """The ids that matched: fusions, pools and whatever counts or names unjudged documents read no others."""
        return self.ids[: self.matched]

    def filled(self, documents: Iterable[str], depth: int) -> Ranking:
        """Filled up to `depth` with these documents in their order, below all that is there: by score 0, or less."""
        present = set(self.ids)
        rest = tuple(islice((document for document in documents if document not in present), depth - len(self)))
        floor = self.scores[-1] - 1.0 if self.scores and self.scores[-1] < 0 else 0.0
        return Ranking(self.ids + rest, self.scores + (floor,) * len(rest), len(self))


def ordered(pairs: Iterable[tuple[str, float]], depth: int | None = None) -> Ranking:
    """Orders (id, score) pairs by the rule. NaN and duplicate ids are errors, never silently dropped."""
    rows = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))
    seen: set[str] = set()
    for item, score in rows:
        if math.isnan(score):
            raise InputError(f"the score of {item!r} is NaN")
        if item in seen:
            raise InputError(f"{item!r} appears twice in one ranking")
        seen.add(item)
    kept = rows if depth is None else rows[:depth]
    return Ranking(tuple(item for item, _ in kept), tuple(float(score) for _, score in kept))
