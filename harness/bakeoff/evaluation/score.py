"""Run × Judgments → Scores: every measure for every query, by trec_eval's conventions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from bakeoff.core.arrays import Values
from bakeoff.core.task import Judgments
from bakeoff.evaluation.graded_run import GradedRun, ratio
from bakeoff.evaluation.measures import Measure, deepest
from bakeoff.evaluation.random_order import RandomOrder, check_size
from bakeoff.evaluation.ranked_grades import NO_DOCUMENT, UNJUDGED, RankedGrades, ideal_grades, join

__all__ = ["RankedGrades", "deepest", "f1_by_weight", "join", "oracle", "random_expectation", "score_queries"]

Scores = dict[Measure, Values]


def score_queries(ranked: RankedGrades, measures: Sequence[Measure], rel: int = 1) -> Scores:
    """Per-query values in the order of the joined queries. `rel` applies to measures that do not set their own."""
    for measure in measures:
        if ranked.depth is not None and (measure.depth_read is None or measure.depth_read > ranked.depth):
            raise ValueError(f"{measure} reads deeper than the {ranked.depth} places that were joined")
    run = GradedRun(ranked, [measure.k for measure in measures], rel)
    return {measure: measure.values(run.condensed if measure.condensed else run) for measure in measures}


def oracle(judgments: Judgments, query_ids: Sequence[str], n_documents: int, depth: int | None = None) -> RankedGrades:
    """A perfect ranking, cut at `depth` like every contender's: the ceiling of each measure on this task."""
    ideal = ideal_grades(judgments, query_ids)
    check_size(ideal, n_documents)
    returned = np.full(len(ideal), min(depth or n_documents, n_documents), dtype=np.int32)
    return RankedGrades(np.where(ideal == NO_DOCUMENT, UNJUDGED, ideal)[:, :depth], returned, ideal)


def random_expectation(
    judgments: Judgments,
    query_ids: Sequence[str],
    n_documents: int,
    measures: Sequence[Measure],
    rel: int = 1,
    depth: int | None = None,
    stale: Values | None = None,
) -> Scores:
    """Each measure's expectation under a uniformly random order of the corpus, of which `depth` documents are returned.

    Exact, except for GMAP if there are too many sets of places to enumerate. Without a depth, all documents are
    returned.
    """
    order = RandomOrder(ideal_grades(judgments, query_ids), n_documents, rel, depth, stale)
    return {
        measure: order.average_condensed(measure.expected) if measure.condensed else measure.expected(order)
        for measure in measures
    }


def f1_by_weight(hits: ArrayLike, true: ArrayLike, predicted: ArrayLike) -> float:
    """The F1 of each class, weighted by its true count. Works from counts: a million classes fit no matrix."""
    hits, true, predicted = (np.asarray(counts, dtype=np.float64) for counts in (hits, true, predicted))
    f1 = ratio(2 * hits, true + predicted)
    return float(ratio(np.array([f1 @ true]), np.array([true.sum()]))[0])
