"""What an index lost: the same vectors searched exactly, scored by the same judgments, beside what the store found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from bakeoff_providers.base import Vectors

from bakeoff.core.filters import conditions, passes
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query, Task
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.metrics import evaluate, join
from bakeoff.lineup.contender import Contender
from bakeoff.results.schema import Loss
from bakeoff.search import exact
from bakeoff.search.hits import SIMILARITY_DIGITS, Hits
from bakeoff.search.searchers import DenseSearcher, Index, Searcher

NDCG, K = Measure.parse("ndcg@10"), 10


@dataclass(slots=True)
class Truth:
    """Exact search over one set of vectors: made once, asked for every store that holds them."""

    index: Index
    vectors: Vectors
    queries: Mapping[str, Vectors]
    rankings: dict[str, Ranking] = field(default_factory=dict)
    _rows: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row, chunk in enumerate(self.index.chunks):
            self._rows.setdefault(chunk.document, []).append(row)

    def search(self, queries: Sequence[Query]) -> dict[str, Ranking]:
        """The exact ranking of every query; those with the same filter in one go."""
        groups: dict[str, list[Query]] = {}
        for query in queries:
            groups.setdefault(repr(query.where), []).append(query)
        for group in groups.values():
            self._search(group)
        return self.rankings

    def recall(self, query: Query, found: Ranking) -> float:
        """Of the ten nearest documents, by their exact scores: one that ties with the tenth counts as found."""
        truth = self.rankings[query.id]
        wanted = min(K, len(truth))
        if not wanted:
            return 1.0
        scores = np.array([self._score(document, self.queries[query.id]) for document in found.ids[:K]])
        return exact.recall(scores, truth.scores[wanted - 1], wanted)

    def _search(self, group: Sequence[Query]) -> None:
        filters = conditions(group[0].where)
        kept = np.array([not filters or passes(self.index.fields(chunk), filters) for chunk in self.index.chunks])
        vectors = self.vectors if kept.all() else self.vectors[kept]
        ids = [chunk.id for chunk, keep in zip(self.index.chunks, kept, strict=True) if keep]
        asked = np.stack([self.queries[query.id] for query in group])

        def hits(places: exact.Rows, scores: exact.Similarities) -> Hits:
            return Hits([ids[place] for place in places], scores.tolist())

        def more(row: int, k: int) -> Hits:
            places, scores = exact.nearest(asked[row : row + 1], vectors, k)
            return hits(places[0], scores[0])

        places, scores = exact.nearest(asked, vectors, max(self.index.reach_past(query.item) for query in group))
        for row, query in enumerate(group):
            first = hits(places[row], scores[row])
            self.rankings[query.id] = self.index.ranking(first, partial(more, row), query.item)

    def _score(self, document: str, query: Vectors) -> float:
        return round(float((self.vectors[self._rows[document]] @ query).max()), SIMILARITY_DIGITS)


@dataclass(slots=True)
class Losses:
    """The losses of one run; stores that hold the same vectors share one exact search."""

    task: Task
    _truths: dict[tuple[tuple[str, ...], str], Truth] = field(default_factory=dict)

    def of(self, contender: Contender, searcher: Searcher | None, found: Mapping[str, Ranking]) -> Loss | None:
        """None where there is nothing to lose: an exact store, or no store at all."""
        if not isinstance(searcher, DenseSearcher) or searcher.store.capabilities.exact:
            return None
        key = contender.embedding(), str(contender.variant)
        truth = self._truths.setdefault(key, Truth(searcher.index, searcher.pieces, searcher.asked))
        return attribute(truth, self.task, found)


def attribute(truth: Truth, task: Task, found: Mapping[str, Ranking]) -> Loss:
    """NDCG under exact search, what the store's lists lack of it, and how many of the nearest they hold."""
    ids = [query.id for query in task.queries]
    rankings = truth.rankings or truth.search(task.queries)
    best, achieved = (
        float(evaluate(join(answers, task.judgments, ids), [NDCG], task.rel)[NDCG].mean())
        for answers in (rankings, found)
    )
    recalls = [truth.recall(query, found[query.id]) for query in task.queries]
    short = sum(len(found[query]) < len(rankings[query]) for query in ids)
    return Loss(ndcg_exact=best, ndcg_lost=best - achieved, recall=float(np.mean(recalls)), short=short)
