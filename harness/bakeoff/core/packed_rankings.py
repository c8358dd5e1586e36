"""Rankings of very many queries in a few arrays: a ranking is made when it is read, and let go again."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping

from bakeoff.core.ranking import Ranking


class PackedRankings(Mapping[str, Ranking]):
    """Rankings by query id. Documents are numbers here, and scores keep all their digits."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._rows: dict[str, int] = {}
        self._ends = array("q", [0])
        self._documents = array("i")
        self._scores = array("d")
        self._matched = array("q")  # −1 where a ranking was not filled up

    def add(self, query: str, ranking: Ranking) -> None:
        """Takes the ranking of a further query."""
        numbers = self._numbers
        self._rows[query] = len(self._rows)
        self._documents.extend([numbers.setdefault(document, len(numbers)) for document in ranking.ids])
        if len(numbers) > len(self._names):
            self._names.extend(document for document in ranking.ids if numbers[document] >= len(self._names))
        self._scores.extend(ranking.scores)
        self._ends.append(len(self._documents))
        self._matched.append(-1 if ranking.matched is None else ranking.matched)

    def same_order(self, other: PackedRankings) -> bool:
        """Whether every query has the same documents in the same order; scores may differ."""
        return self._rows.keys() == other._rows.keys() and all(self[query].ids == other[query].ids for query in self)

    def __getitem__(self, query: str) -> Ranking:
        row = self._rows[query]
        part = slice(self._ends[row], self._ends[row + 1])
        ids = tuple(map(self._names.__getitem__, self._documents[part]))
        matched = self._matched[row]
        return Ranking(ids, tuple(self._scores[part]), None if matched < 0 else matched)

    def __contains__(self, query: object) -> bool:
        return query in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
