"""What nobody has judged, beside every row: how much it is, how far it could move a score, and who could win by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote

from bakeoff.core.arrays import Values
from bakeoff.core.figures import Section
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
    """By measure: how much was judged, and the score if all that was not were irrelevant, or relevant."""
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
    """Every contender that grades of unjudged documents could put before the best, fewest grades first."""
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


def possible_winner_sentences(
    winners: Sequence[PossibleWinner], best: str | None, measure: Measure, task: str = "TASK", lineup: str = "LINEUP"
) -> list[str]:
    """In one sentence, for the contender that needs the fewest; `task` and `lineup` are those of the command."""
    if not winners:
        return []
    first, more = winners[0], len(winners) - 1
    some = f"{first.documents} unjudged documents" if first.documents > 1 else "one unjudged document"
    others = f" (so could {more} other{'s' if more > 1 else ''})" if more else ""
    return [
        f"Unjudged documents could turn the winner: if {some} that {first.challenger} ranks above {best} had the "
        f"highest grade, {first.challenger} would lead by {measure.label}{others}; "
        f"`bakeoff grade next {quote(task)} --lineup {quote(lineup)}` names them first."
    ]


def unjudged_sections(rows: Sequence[Row], measure: Measure) -> list[Section]:
    """A table of the rows whose rankings are judged in part; nothing where all is judged."""
    name = str(measure)
    bounded = [(row, row.bounds[name]) for row in rows if name in row.bounds]
    if all(bounds.judged > 1 - 1e-12 for _, bounds in bounded):
        return []
    return [
        Section(
            title="Unjudged documents",
            head=["Contender", judged_measure(measure).label, f"{measure.label} {_as_scored(measure)}", "if relevant"],
            rows=[
                [row.label, f"{bounds.judged:.3f}", f"{bounds.irrelevant:.3f}", f"{bounds.relevant:.3f}"]
                for row, bounds in sorted(bounded, key=lambda pair: -pair[1].irrelevant)
            ],
            notes=_meaning(measure),
        )
    ]


def _meaning(measure: Measure) -> list[str]:
    """What the columns are, in the reader's words."""
    share = judged_measure(measure)
    places = "place" if share.k == 1 else f"{share.k} places"
    counted = "takes the others out of the rankings" if measure.condensed else "counts the others as irrelevant"
    return [
        f"{share.label}: of the documents that matched in the first {places}, the share that has a grade.",
        f"{measure.label} {_as_scored(measure)}: the score of the matrix, which {counted}. "
        "if relevant: the score if every one of them had the highest grade that was given.",
        _between(measure),
    ]


def _as_scored(measure: Measure) -> str:
    return "without them" if measure.condensed else "if irrelevant"


def _between(measure: Measure) -> str:
    """Whether the two scores of a row are bounds."""
    if measure.condensed:
        return (
            f"{measure.label} moves up what is below an unjudged document: the two are no bounds, since a document "
            "that gets a low grade may lower the score."
        )
    if measure.monotone:
        return "Whatever grades they get, the score stays between the two."
    return (
        f"{measure.label} is divided by what all relevant documents make possible, and each further one raises that: "
        "the two are no bounds, and a score may even fall when more is relevant."
    )
