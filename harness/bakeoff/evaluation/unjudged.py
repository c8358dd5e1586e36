"""What unjudged documents could change: scores if they were all relevant, and grades that would change the winner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Judgments
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.ranked_grades import join
from bakeoff.evaluation.score import score_queries

NOISE = 1e-12  # rounding of equal scores
BLOCK = 4096  # queries whose documents are graded at once

Answers = Mapping[str, Ranking]  # by query


def top_grade(judgments: Judgments, rel: int) -> int:
    """The highest grade that was given, or the lowest that is relevant where none was."""
    return max(rel, max((grade for judged in judgments.values() for grade in judged.values()), default=rel))


def if_relevant(
    answers: Answers, judgments: Judgments, queries: Sequence[str], measure: Measure, rel: int = 1
) -> Values:
    """Per query, the value if every unjudged document that matched above the cut-off had the highest grade."""
    best = top_grade(judgments, rel)

    def values(asked: Sequence[str]) -> Values:
        graded = {
            query: {
                **dict.fromkeys(answers[query].found[: measure.k] if query in answers else (), best),
                **judgments.get(query, {}),
            }
            for query in asked
        }
        return score_queries(join(answers, graded, asked), [measure], rel)[measure]

    return np.concatenate([values(queries[start : start + BLOCK]) for start in range(0, len(queries), BLOCK)])


def winner_changing_grades(
    best: Answers,
    challenger: Answers,
    judgments: Judgments,
    queries: Sequence[str],
    measure: Measure,
    rel: int = 1,
    weights: Values | None = None,
) -> list[tuple[str, str]]:
    """The pairs whose highest grade would put the challenger before the best; none where this finds no such grades.

    Only documents that the challenger ranks above the best are taken, all of a query's or none: what is found is
    always true, but for measures with an ideal a cleverer choice may exist where nothing is found.
    """
    highest = top_grade(judgments, rel)
    open_ = {query: _favouring(best.get(query), challenger.get(query), judgments, query, measure) for query in queries}
    graded = {query: {**judgments.get(query, {}), **dict.fromkeys(open_[query], highest)} for query in queries}
    now, then = (
        score_queries(join(challenger, truth, queries), [measure], rel)[measure]
        - score_queries(join(best, truth, queries), [measure], rel)[measure]
        for truth in (judgments, graded)
    )
    if weights is not None:
        now, then = now * weights, then * weights
    gains = np.array([(then[at] - now[at]) / max(len(open_[query]), 1) for at, query in enumerate(queries)])
    lead, needed = float(now.sum()), list[tuple[str, str]]()
    for at in np.argsort(-gains, kind="stable").tolist():
        if lead > NOISE or gains[at] <= NOISE:
            break
        lead += float(then[at] - now[at])
        needed += [(queries[at], document) for document in open_[queries[at]]]
    return needed if lead > NOISE else []


def _favouring(
    best: Ranking | None, challenger: Ranking | None, judgments: Judgments, query: str, measure: Measure
) -> list[str]:
    """Unjudged documents that the challenger found above the cut-off, higher than the best has them."""
    if challenger is None:
        return []
    judged = judgments.get(query, {})
    places = {document: place for place, document in enumerate(best.ids[: measure.k] if best else ())}
    return [
        document
        for place, document in enumerate(challenger.found[: measure.k])
        if document not in judged and place < places.get(document, len(challenger))
    ]
