"""Which places hold a document that was out of date on the query's day."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Judgments, Period, Query, Task, document_blocks, period_of


@dataclass(frozen=True, slots=True, eq=False)
class StalePlaces:
    """Queries × places that hold an out-of-date document, and which queries are time-bound."""

    stale: NDArray[np.bool_]
    time_bound: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Validity:
    """A task's queries with their days, and the validity periods of its documents."""

    queries: Sequence[Query]
    periods: Mapping[str, Period]
    documents: int
    _first: Sequence[str] = field(init=False)  # all days of either end, sorted
    _last: Sequence[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_first", sorted(period.first for period in self.periods.values()))
        object.__setattr__(self, "_last", sorted(period.last for period in self.periods.values() if period.last))

    @classmethod
    def of(cls, task: Task) -> Validity:
        """Reads the validity periods from the documents' metadata."""
        periods = {
            document.id: period
            for block in document_blocks(task.documents)
            for document in block
            if any(period := period_of(document.metadata))
        }
        return cls(task.queries, periods, len(task.documents))

    def is_stale(self, document: str, query: Query) -> bool:
        """Whether a document is out of date for a query."""
        return bool(query.as_of) and not self.periods.get(document, Period()).has(query.as_of)

    def in_rankings(self, rankings: Mapping[str, Ranking]) -> StalePlaces:
        """The stale places of a contender's rankings."""
        nothing = Ranking((), ())
        return self._places(
            [
                [self.is_stale(document, query) for document in rankings.get(query.id, nothing).ids]
                for query in self.queries
            ]
        )

    def in_perfect_rankings(self, judgments: Judgments, depth: int) -> StalePlaces:
        """The stale places of a perfect ranking: best grade first, valid before stale. Ungraded counts as 0."""
        rows = []
        for query in self.queries:
            grades = {name: grade for name, grade in judgments.get(query.id, {}).items() if grade > 0}
            best = sorted((-grade, self.is_stale(name, query)) for name, grade in grades.items())
            stale = self._stale_count(query) - sum(old for _, old in best)
            valid = self._candidates(query) - len(best) - stale
            shown = min(valid, max(depth - len(best), 0))
            rows.append([*(old for _, old in best), *[False] * shown, *[True] * min(stale, depth)][:depth])
        return self._places(rows)

    def shares(self) -> Values:
        """Per query, the out-of-date share of the documents it can find; NaN if it is not time-bound."""
        return np.array(
            [
                self._stale_count(query) / max(self._candidates(query), 1) if query.as_of else np.nan
                for query in self.queries
            ]
        )

    def _stale_count(self, query: Query) -> int:
        """Documents that start later plus those that ended earlier, by binary search: a corpus may have millions."""
        if not query.as_of:
            return 0
        later, over = len(self._first) - bisect_right(self._first, query.as_of), bisect_left(self._last, query.as_of)
        return later + over - self.is_stale(query.excluded, query)

    def _candidates(self, query: Query) -> int:
        return self.documents - bool(query.excluded)

    def _places(self, rows: Sequence[Sequence[bool]]) -> StalePlaces:
        stale = np.zeros((len(rows), max(map(len, rows))), dtype=np.bool_)
        for at, row in enumerate(rows):
            stale[at, : len(row)] = row
        return StalePlaces(stale, np.array([bool(query.as_of) for query in self.queries]))
