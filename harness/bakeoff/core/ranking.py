"""The order of every ranking: score descending, then id ascending. Stores and files never decide ties.

Rankings of very many queries are stored in a few arrays.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from bakeoff_providers.errors import InputError


@dataclass(frozen=True, slots=True)
class Ranking:
    """A contender's answer to one query: ids with scores, best first.

    `matched` is set if the ranking was filled up: later places hold documents that matched nothing, by id.
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
        """The ids that matched. Fusions, pools and counts of unjudged documents use only these."""
        return self.ids[: self.matched]

    def fill(self, documents: Iterable[str], depth: int) -> Ranking:
        """Fills the ranking up to `depth` with these documents in their order, scored below all others: 0 or less."""
        present = set(self.ids)
        rest = tuple(islice((document for document in documents if document not in present), depth - len(self)))
        floor = self.scores[-1] - 1.0 if self.scores and self.scores[-1] < 0 else 0.0
        return Ranking(self.ids + rest, self.scores + (floor,) * len(rest), len(self))


def make_ranking(pairs: Iterable[tuple[str, float]], depth: int | None = None) -> Ranking:
    """Orders (id, score) pairs. NaN and duplicate ids are errors, never silently dropped."""
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


class PackedRankings(Mapping[str, Ranking]):
    """Rankings by query id, with documents as numbers and scores in full precision."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._rows: dict[str, int] = {}
        self._ends = array("q", [0])
        self._documents = array("i")
        self._scores = array("d")
        self._matched = array("q")  # −1 if the ranking was not filled up

    def add(self, query: str, ranking: Ranking) -> None:
        """Adds the ranking of another query."""
        numbers = self._numbers
        self._rows[query] = len(self._rows)
        self._documents.extend([numbers.setdefault(document, len(numbers)) for document in ranking.ids])
        if len(numbers) > len(self._names):
            self._names.extend(document for document in ranking.ids if numbers[document] >= len(self._names))
        self._scores.extend(ranking.scores)
        self._ends.append(len(self._documents))
        self._matched.append(-1 if ranking.matched is None else ranking.matched)

    def same_order(self, other: PackedRankings) -> bool:
        """Whether every query has the same documents in the same order. Scores may differ."""
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
