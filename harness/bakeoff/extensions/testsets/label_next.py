"""The ungraded pairs whose grade could most change the order of the contenders."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.core.progress import Progress, silent
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Task
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.ranked_grades import join_each
from bakeoff.evaluation.score import join, score_queries
from bakeoff.evaluation.unjudged import winner_changing_grades
from bakeoff.extensions.testsets.annotations import QueryDocument
from bakeoff.extensions.testsets.pool import Rankings
from bakeoff.statistics.constants import NOISE
from bakeoff.tasks.ground_truth import GRADES


@dataclass(frozen=True, slots=True)
class Candidate:
    """An ungraded pair, and the effect of its most influential grade.

    `swaps` are the contenders that would change places. `closes` is the largest share of a gap that it closes, and
    `gap` the contender behind and the one ahead. `could_lead` is the contender that this pair, with others, would put
    first.
    """

    pair: QueryDocument
    grade: int
    swaps: tuple[tuple[str, str], ...]
    closes: float
    gap: tuple[str, str] | None
    ranks: Mapping[str, int]
    could_lead: str = ""


def next_pairs(
    task: Task,
    rankings: Rankings,
    measure: Measure,
    n: int,
    *,
    depth: int | None = None,
    scale: Collection[int] = GRADES,
    queries: Sequence[str] | None = None,
    progress: Progress = silent,
) -> list[Candidate]:
    """The n pairs whose grade would most change the order: first those that could change the winner, then by effect.

    `queries` restricts the choice.
    """
    labels, queries = list(rankings), list(queries or [query.id for query in task.queries])
    scores = np.stack([_scores(rankings[label], task, queries, measure) for label in labels])
    means = scores.mean(axis=1)
    candidates: list[Candidate] = []
    with progress("queries", len(queries)) as advance:
        for column, query in enumerate(queries):
            answers = {label: rankings[label][query] for label in labels if query in rankings[label]}
            places = _find_unjudged(answers, task.judgments.get(query, {}), depth or measure.k or 10)
            if places:
                changed = _with_each_grade(answers, task, query, list(places), measure, scale)
                for document, ranks in places.items():
                    options = []
                    for grade in filter(None, scale):
                        after = changed[document, grade]
                        shift = [after.get(label, 0.0) - scores[row, column] for row, label in enumerate(labels)]
                        moved = means + np.array(shift) / len(queries)
                        options.append(_candidate((query, document), grade, labels, means, moved, ranks))
                    candidates.append(max(options, key=_weight))
            advance(1)
    winners = _possible_winners(task, rankings, labels, means, queries, measure)
    candidates = [replace(pair, could_lead=winners.get(pair.pair, "")) for pair in candidates]
    return sorted(candidates, key=lambda pair: (not pair.could_lead, *(-part for part in _weight(pair)), pair.pair))[:n]


def _possible_winners(
    task: Task, rankings: Rankings, labels: Sequence[str], means: Values, queries: Sequence[str], measure: Measure
) -> dict[QueryDocument, str]:
    """The pairs that together would put a challenger first, for the challenger that needs the fewest."""
    best = labels[int(np.argmax(means))]
    needed = {
        label: winner_changing_grades(rankings[best], rankings[label], task.judgments, queries, measure, task.rel)
        for label in labels
        if label != best
    }
    easiest = min((label for label in needed if needed[label]), key=lambda label: len(needed[label]), default=None)
    return dict.fromkeys(needed[easiest], easiest) if easiest else {}


def _weight(candidate: Candidate) -> tuple[float, float, float]:
    return len(candidate.swaps), candidate.closes, -candidate.grade


def _scores(answers: Mapping[str, Ranking], task: Task, queries: Sequence[str], measure: Measure) -> Values:
    return score_queries(join(answers, task.judgments, queries), [measure], task.rel)[measure]


def _find_unjudged(answers: Mapping[str, Ranking], judged: Mapping[str, int], depth: int) -> dict[str, dict[str, int]]:
    """Ungraded documents near the top of a ranking, with their rank by contender."""
    places: dict[str, dict[str, int]] = {}
    for label, ranking in answers.items():
        for rank, document in enumerate(ranking.found[:depth], start=1):
            if document not in judged:
                places.setdefault(document, {})[label] = rank
    return places


def _with_each_grade(
    answers: Mapping[str, Ranking],
    task: Task,
    query: str,
    documents: Sequence[str],
    measure: Measure,
    scale: Collection[int],
) -> dict[tuple[str, int], dict[str, float]]:
    """Each contender's score on this query under each possible grade, in one evaluation."""
    judged = task.judgments.get(query, {})
    cases = [(document, grade, label) for document in documents for grade in filter(None, scale) for label in answers]
    truths = [{**judged, document: grade} for document, grade, _ in cases]
    ranked = join_each(answers, truths, [label for _, _, label in cases])
    values = score_queries(ranked, [measure], task.rel)[measure]
    scores: dict[tuple[str, int], dict[str, float]] = {}
    for (document, grade, label), value in zip(cases, values, strict=True):
        scores.setdefault((document, grade), {})[label] = float(value)
    return scores


def _candidate(
    pair: QueryDocument,
    grade: int,
    labels: Sequence[str],
    means: Values,
    moved: Values,
    ranks: Mapping[str, int],
) -> Candidate:
    swaps: list[tuple[str, str]] = []
    closes, closed = 0.0, None
    for i, j in combinations(range(len(labels)), 2):
        gap, then = float(means[i] - means[j]), float(moved[i] - moved[j])
        behind = (labels[j], labels[i]) if gap > 0 else (labels[i], labels[j])
        if abs(gap) <= NOISE:
            share = inf if abs(then) > NOISE else 0.0
        else:
            share = (abs(gap) - then * float(np.sign(gap))) / abs(gap)
            if gap * then < 0 and abs(then) > NOISE:
                swaps.append(behind)
        if share > closes + NOISE:
            closes, closed = share, behind
    return Candidate(pair, grade, tuple(swaps), closes, closed, ranks)
