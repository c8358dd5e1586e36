"""Unjudged documents: their share, how far they could move a score, and who could win by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bakeoff.core.arrays import Values
from bakeoff.core.facts import Fact, Section, TableColumn, column, fact
from bakeoff.core.task import Task
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.ranked_grades import join
from bakeoff.evaluation.score import score_queries
from bakeoff.evaluation.unjudged import Answers, if_relevant, winner_changing_grades
from bakeoff.results.schema import Bounds, PossibleWinner, Row
from bakeoff.statistics.averaging import Averaging

JUDGED_CUT = 10  # where the measure has no cut-off of its own


def judged_measure(measure: Measure) -> Measure:
    """`judged@k` at the measure's own cut-off."""
    return Measure.of("judged", measure.k or JUDGED_CUT)


def bounds_of(answers: Answers, task: Task, measures: Sequence[Measure], averaging: Averaging) -> dict[str, Bounds]:
    """Per measure: the judged share, and the score if all unjudged documents were irrelevant or relevant."""
    queries = [query.id for query in task.queries]
    ranked = join(answers, task.judgments, queries)
    measures = [measure for measure in measures if not measure.diagnostic]
    wanted = list(dict.fromkeys([*measures, *map(judged_measure, measures)]))
    scores = score_queries(ranked, wanted, task.rel)
    return {
        str(measure): Bounds(
            judged=averaging.mean(scores[judged_measure(measure)]),
            irrelevant=measure.figure(averaging.mean(scores[measure])),
            relevant=measure.figure(averaging.mean(if_relevant(answers, task.judgments, queries, measure, task.rel))),
        )
        for measure in measures
    }


def possible_winners(
    rankings: Mapping[str, Answers], best: str | None, task: Task, measure: Measure, weights: Values | None = None
) -> list[PossibleWinner]:
    """Contenders that further grades could put first, fewest grades first."""
    if best is None:
        return []
    queries = [query.id for query in task.queries]
    winners = [
        PossibleWinner(challenger=label, documents=len(pairs))
        for label, answers in rankings.items()
        if label != best
        and (
            pairs := winner_changing_grades(
                rankings[best], answers, task.judgments, queries, measure, task.rel, weights
            )
        )
    ]
    return sorted(winners, key=lambda one: one.documents)


def unjudged_sections(rows: Sequence[Row], measure: Measure) -> list[Section]:
    """A table of partly judged rows; none if everything is judged."""
    name = str(measure)
    bounded = [(row, row.bounds[name]) for row in rows if name in row.bounds]
    if all(bounds.judged > 1 - 1e-12 for _, bounds in bounded):
        return []
    share = judged_measure(measure)
    scored = "score_condensed" if measure.condensed else "score_if_irrelevant"
    return [
        Section(
            title=fact("unjudged"),
            head=[
                column("contender"),
                TableColumn(head=share.label, form="fixed"),
                TableColumn(head=fact(scored, measure=measure.label), form="fixed"),
                column("score_if_relevant", "fixed"),
            ],
            rows=[
                [row.label, bounds.judged, bounds.irrelevant, bounds.relevant]
                for row, bounds in sorted(bounded, key=lambda pair: -pair[1].irrelevant)
            ],
            notes=[
                fact("judged_share", share=share.label, places=share.k),
                fact("unjudged_scores", measure=measure.label, condensed=measure.condensed),
                _between(measure),
            ],
        )
    ]


def _between(measure: Measure) -> Fact:
    """Whether the two scores of a row are bounds."""
    if measure.condensed:
        return fact("no_bounds_condensed", measure=measure.label)
    return fact("bounds") if measure.monotone else fact("no_bounds_normalised", measure=measure.label)
