"""What an index lost: the same vectors searched exactly, scored by the same judgments, beside what the store found."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import numpy as np

from bakeoff.core.figures import Loss
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Task
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import join, score_queries
from bakeoff.search.exact_search import ExactRankings
from bakeoff.search.searchers import Searcher
from bakeoff.statistics.averaging import averaging_of

NDCG = Measure.parse("ndcg@10")


@dataclass(slots=True)
class Losses:
    """The losses of one run; rows with the same key hold the same vectors and share one exact search."""

    task: Task
    _searches: dict[Hashable, ExactRankings] = field(default_factory=dict)

    def of(self, key: Hashable, searcher: Searcher, retrieved: Mapping[str, Ranking]) -> Loss | None:
        """None where there is nothing to lose: an exact store, or no store at all."""
        exact = searcher.exact_search()
        if exact is None:
            return None
        return index_loss(self._searches.setdefault((key, type(exact)), exact), self.task, retrieved)


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
