"""What an index lost: the same vectors searched exactly, scored by the same judgments, beside what the store found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import numpy as np

from bakeoff.core.figures import Loss
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Task
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import join, score_queries
from bakeoff.search.answer import Searcher
from bakeoff.search.exact_search import ExactRankings
from bakeoff.statistics.averaging import averaging_of

NDCG = Measure.parse("ndcg@10")


@dataclass(slots=True)
class Losses:
    """The losses of one run; rows with the same key hold the same vectors and share one exact search.

    `rows` says how many rows of each key there will be: after the last one its search is let go.
    """

    task: Task
    rows: Counter[Hashable]
    _searches: dict[Hashable, dict[type, ExactRankings]] = field(default_factory=dict)

    def skip(self, key: Hashable) -> None:
        """A row of this key that is not scored after all."""
        self.rows[key] -= 1
        if self.rows[key] <= 0:
            self._searches.pop(key, None)

    def of(self, key: Hashable, searcher: Searcher, retrieved: Mapping[str, Ranking]) -> Loss | None:
        """None where there is nothing to lose: an exact store, or no store at all."""
        try:
            exact = searcher.exact_search()
            if exact is None:
                return None
            shared = self._searches.setdefault(key, {}).setdefault(type(exact), exact)
            return index_loss(shared, self.task, retrieved)
        finally:
            self.skip(key)


def index_loss(exact: ExactRankings, task: Task, retrieved: Mapping[str, Ranking]) -> Loss:
    """NDCG under exact search, what the store's lists lack of it, and how many of the nearest they hold."""
    ids = [query.id for query in task.queries]
    rankings = exact.rankings(task.queries)
    averaging = averaging_of([query.drawn for query in task.queries])
    best, achieved = (
        averaging.mean(score_queries(join(answers, task.judgments, ids), [NDCG], task.rel)[NDCG])
        for answers in (rankings, retrieved)
    )
    recalls = np.array([exact.recall(query, retrieved[query.id]) for query in task.queries])
    short = sum(len(retrieved[query]) < len(rankings[query]) for query in ids)
    return Loss(ndcg_exact=best, ndcg_lost=best - achieved, recall=averaging.mean(recalls), short=short)
