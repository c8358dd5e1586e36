"""The effect of unjudged documents: scores if all were relevant, and grades that would change the winner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.core.ranking import Ranking, run_of
from bakeoff.core.task import Judgments
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.ranked_grades import join, join_each
from bakeoff.evaluation.score import score_queries

NOISE = 1e-12  # rounding error between equal scores
BLOCK = 4096  # queries graded at once
ONE_BY_ONE = 20_000  # open documents; beyond this, only whole queries are tried

Answers = Mapping[str, Ranking]  # by query
Grading = tuple[str, tuple[str, ...]]  # a query and documents


def top_grade(judgments: Judgments, rel: int) -> int:
    """The highest grade given; if there is none, the lowest relevant grade."""
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
    """Pairs whose highest grade would put the challenger ahead of the best; empty if none are found.

    Only documents that the challenger ranks above the best are considered, in two greedy orders: whole queries at a
    time, and one by one. The smaller set counts. Any set found is valid and, for sums over places such as P and DCG,
    minimal. For measures with an ideal, fewer pairs may do, and some may exist even if none are found.
    """
    open_ = {query: _favouring(best.get(query), challenger.get(query), judgments, query, measure) for query in queries}
    highest, runs = top_grade(judgments, rel), [run_of(answers, queries) for answers in (best, challenger)]
    weight = dict(zip(queries, np.ones(len(queries)) if weights is None else weights, strict=True))

    def leads(gradings: Sequence[Grading]) -> Values:
        """The challenger's weighted lead on a query if these documents had the highest grade, per grading."""
        truth = [{**judgments.get(query, {}), **dict.fromkeys(chosen, highest)} for query, chosen in gradings]
        asked = [query for query, _ in gradings]
        theirs, ours = (score_queries(join_each(run, truth, asked), [measure], rel)[measure] for run in runs)
        return np.asarray((ours - theirs) * [weight[query] for query in asked])

    now = leads([(query, ()) for query in queries])
    if (whole := _by_query(open_, now, leads)) and sum(map(len, open_.values())) <= ONE_BY_ONE:
        single = _by_document(open_, now, leads, fewer_than=len(whole))
        return single or whole
    return whole


def _by_query(
    open_: Mapping[str, Sequence[str]], now: Values, leads: Callable[[Sequence[Grading]], Values]
) -> list[tuple[str, str]]:
    """All open documents of the query with the highest gain per document, then of the next."""
    queries = list(open_)
    then = leads([(query, tuple(documents)) for query, documents in open_.items()])
    gains = np.array([(then[at] - now[at]) / max(len(open_[query]), 1) for at, query in enumerate(queries)])
    lead, needed = float(now.sum()), list[tuple[str, str]]()
    for at in np.argsort(-gains, kind="stable").tolist():
        if lead > NOISE or gains[at] <= NOISE:
            break
        lead += float(then[at] - now[at])
        needed += [(queries[at], document) for document in open_[queries[at]]]
    return needed if lead > NOISE else []


def _by_document(
    open_: Mapping[str, Sequence[str]], now: Values, leads: Callable[[Sequence[Grading]], Values], fewer_than: int
) -> list[tuple[str, str]]:
    """The document with the highest gain, given those already taken, then the next; none if that takes too many."""
    taken: dict[str, tuple[str, ...]] = dict.fromkeys(open_, ())
    lead_of = dict(zip(open_, now.tolist(), strict=True))

    def candidates(queries: Iterable[str]) -> dict[tuple[str, str], float]:
        pairs = [(query, document) for query in queries for document in open_[query] if document not in taken[query]]
        values = leads([(query, (*taken[query], document)) for query, document in pairs]) if pairs else np.array([])
        return dict(zip(pairs, values.tolist(), strict=True))

    after, total, needed = candidates(open_), float(now.sum()), list[tuple[str, str]]()
    while total <= NOISE and after and len(needed) + 1 < fewer_than:
        query, document = max(after, key=lambda pair: after[pair] - lead_of[pair[0]])
        gain = after[query, document] - lead_of[query]
        if gain <= NOISE:
            break
        total, lead_of[query] = total + gain, after[query, document]
        taken[query] += (document,)
        needed.append((query, document))
        after = {pair: value for pair, value in after.items() if pair[0] != query} | candidates([query])
    return needed if total > NOISE else []


def _favouring(
    best: Ranking | None, challenger: Ranking | None, judgments: Judgments, query: str, measure: Measure
) -> list[str]:
    """Unjudged documents above the cut-off that the challenger ranks higher than the best does."""
    if challenger is None:
        return []
    judged = judgments.get(query, {})
    places = {document: place for place, document in enumerate(best.ids[: measure.k] if best else ())}
    return [
        document
        for place, document in enumerate(challenger.found[: measure.k])
        if document not in judged and place < places.get(document, len(challenger))
    ]
