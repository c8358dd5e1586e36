"""Compares rankings with exact search: the loss of approximate indexes, the errors of exact ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec
import numpy as np
from bakeoff_providers.errors import StoreError

from bakeoff.core.figures import Loss
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query, Task
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import join, score_queries
from bakeoff.search.answer import Searcher
from bakeoff.search.exact_search import ExactRankings
from bakeoff.statistics.averaging import task_averaging

NDCG = Measure.parse("ndcg@10")


class Place(msgspec.Struct, frozen=True):
    """One position of a ranking."""

    document: str
    score: float


class FirstDifference(msgspec.Struct, frozen=True):
    """The first position at which two rankings differ; None if a list ended."""

    query: str
    place: int  # from 1
    expected: Place | None
    got: Place | None

    def __str__(self) -> str:
        expected, got = (
            "nothing" if place is None else f"{place.document} ({place.score:.6f})"
            for place in (self.expected, self.got)
        )
        return f"query {self.query}, place {self.place}: expected {expected}, got {got}"


class Unlike(msgspec.Struct, frozen=True):
    """Another exact row over the same vectors that ranks differently."""

    label: str
    difference: FirstDifference


class NotExact(StoreError):
    """A store that claims to be exact differs from exact search over the same vectors."""

    def __init__(self, difference: FirstDifference) -> None:
        self.difference = difference
        super().__init__(f"the store claims to be exact, but exact search ranks differently: {difference}")


@dataclass(slots=True)
class Losses:
    """The losses of one run; rows with the same key hold the same vectors and share one exact search.

    `rows` is the number of rows per key; after the last one, its search is released. `unlike` has the exact rows that
    passed and still rank differently on a query outside the sample.
    """

    task: Task
    rows: Counter[Hashable]
    unlike: dict[str, Unlike] = field(default_factory=dict, init=False)
    _searches: dict[Hashable, dict[type, ExactRankings]] = field(default_factory=dict, init=False)
    _first: dict[Hashable, tuple[str, Mapping[str, Ranking]]] = field(default_factory=dict, init=False)

    def skip(self, key: Hashable) -> None:
        """Count off a row of this key that is not scored."""
        self.rows[key] -= 1
        if self.rows[key] <= 0:
            self._searches.pop(key, None)
            self._first.pop(key, None)

    def of(self, key: Hashable, label: str, searcher: Searcher, retrieved: Mapping[str, Ranking]) -> Loss | None:
        """The loss of an approximate row, else None. Raises NotExact for a false claim."""
        try:
            found = searcher.exact_search()
            if found is None:
                return None
            exact = self._searches.setdefault(key, {}).setdefault(type(found), found)
            exact.queries.update(found.queries)
            task = _answered(self.task, retrieved)
            if not searcher.exact:
                return index_loss(exact, task, retrieved) if task.queries else None
            check_exact(exact, [query for query in task.queries if query.id in found.queries], retrieved)
            self._compare_rows(key, label, retrieved, 2 * exact.tolerance)
            return None
        finally:
            self.skip(key)

    def _compare_rows(self, key: Hashable, label: str, retrieved: Mapping[str, Ranking], tolerance: float) -> None:
        """Compare with the first exact row over the same vectors, on every query."""
        other, expected = self._first.setdefault(key, (label, retrieved))
        if other == label:
            return
        for query in self.task.queries:
            if query.id not in expected or query.id not in retrieved:
                continue
            ranking = expected[query.id]
            if found := first_difference(query.id, ranking, retrieved[query.id], tolerance):
                self.unlike[label] = Unlike(other, found)
                mirrored = FirstDifference(found.query, found.place, found.got, found.expected)
                self.unlike.setdefault(other, Unlike(label, mirrored))
                return


def _answered(task: Task, retrieved: Mapping[str, Ranking]) -> Task:
    """Removes the queries without a ranking."""
    if all(query.id in retrieved for query in task.queries):
        return task
    queries = [query for query in task.queries if query.id in retrieved]
    judgments = {query: grades for query, grades in task.judgments.items() if query in retrieved}
    return msgspec.structs.replace(task, queries=queries, judgments=judgments)


def index_loss(exact: ExactRankings, task: Task, retrieved: Mapping[str, Ranking]) -> Loss:
    """NDCG under exact search, the store's loss, and its recall."""
    ids = [query.id for query in task.queries]
    rankings = exact.rankings(task.queries)
    averaging = task_averaging(task)
    best, achieved = (
        averaging.mean(score_queries(join(answers, task.judgments, ids), [NDCG], task.rel)[NDCG])
        for answers in (rankings, retrieved)
    )
    near = [exact.nearness(query, retrieved[query.id]) for query in task.queries]
    return Loss(
        ndcg_exact=best,
        ndcg_lost=best - achieved,
        recall=averaging.mean(np.array([one.recall for one in near])),
        short=sum(len(retrieved[query]) < len(rankings[query]) for query in ids),
        score_error=max(one.score_error for one in near),
    )


def check_exact(exact: ExactRankings, queries: Sequence[Query], retrieved: Mapping[str, Ranking]) -> None:
    """Raise NotExact at the first difference beyond float32 rounding."""
    rankings, tolerance = exact.rankings(queries), exact.tolerance
    for query in queries:
        score = partial(exact.score, query=query)
        if found := first_difference(query.id, rankings[query.id], retrieved[query.id], tolerance, score):
            raise NotExact(found)


def first_difference(
    query: str, expected: Ranking, got: Ranking, tolerance: float, score: Callable[[str], float] | None = None
) -> FirstDifference | None:
    """The first position with another score, or a document that lacks that score. Ties may swap.

    `score` works out that of a document that is not among the expected; without it, such a document ties with the last.
    """
    both = min(len(expected), len(got))
    wrong = np.abs(np.subtract(expected.scores[:both], got.scores[:both])) > tolerance
    if expected.ids[:both] != got.ids[:both]:
        scores = dict(zip(expected.ids, expected.scores, strict=True))
        for document in set(got.ids[:both]) - scores.keys():
            scores[document] = score(document) if score else expected.scores[-1]
        wrong |= np.abs(np.subtract([scores[document] for document in got.ids[:both]], got.scores[:both])) > tolerance
    if not wrong.any() and len(expected) == len(got):
        return None
    place = int(np.argmax(wrong)) if wrong.any() else both
    return FirstDifference(query, place + 1, _place(expected, place), _place(got, place))


def _place(ranking: Ranking, place: int) -> Place | None:
    return Place(ranking.ids[place], ranking.scores[place]) if place < len(ranking) else None
