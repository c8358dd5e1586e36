"""Scores from a model's grades on all queries, corrected by people's grades on a random sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.arrays import Values
from bakeoff.core.hashing import order_key
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Judgments
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.ranked_grades import join
from bakeoff.evaluation.score import score_queries
from bakeoff.extensions.testsets.annotations import QueryDocument, settle
from bakeoff.extensions.testsets.pool import Rankings
from bakeoff.extensions.testsets.ppi import (
    FEWEST,
    Bounded,
    BoundedDifference,
    CorrectedMean,
    Kind,
    Unbounded,
    correct_mean,
    mean_estimate,
)
from bakeoff.extensions.testsets.task_folder import TaskFolder


@dataclass(frozen=True, slots=True)
class Corrected:
    """Estimates for a contender or a pair: people only, corrected, and the model alone, which may be biased."""

    what: str
    people: CorrectedMean
    corrected: CorrectedMean
    model_alone: CorrectedMean


@dataclass(frozen=True, slots=True)
class Correction:
    """All contenders and pairs; people graded `by_people` of `queries`."""

    measure: Measure
    queries: int
    by_people: int
    rows: Sequence[Corrected]
    pairs: Sequence[Corrected]


def sample_pairs(pairs: Sequence[QueryDocument], queries: int, seed: int = 42) -> list[QueryDocument]:
    """Draw queries at random and keep their whole pools, as the correction requires."""
    names = sorted({query for query, _ in pairs}, key=lambda query: order_key(seed, "people", query))
    kept = set(names[:queries])
    return [pair for pair in pairs if pair[0] in kept]


def grades_by(folder: TaskFolder, kind: str) -> dict[str, dict[str, int]]:
    """The settled grades of all people or all models; adjudicated grades are people's."""
    annotators = {who: given for who, given in folder.annotators().items() if given.kind == kind}
    grades: dict[str, dict[str, int]] = {}
    settled = settle(annotators, folder.read_adjudications() if kind == "person" else [])
    for (query, document), grade in settled.grades.items():
        grades.setdefault(query, {})[document] = grade
    return grades


def correct(rankings: Rankings, people: Judgments, model: Judgments, measure: Measure, rel: int = 1) -> Correction:
    """Correct the model's scores by people's, which count for queries whose whole pool they graded."""
    asked = [query for query in model if model[query]]
    there = [query for query in asked if set(model[query]) <= set(people.get(query, {}))]
    elsewhere = [query for query in asked if query not in set(there)]
    if len(there) < FEWEST:
        raise InputError(
            f"people graded the whole pool of {len(there)} queries; at least {FEWEST} are needed",
            remedy=f"bakeoff grade TASK --judge people --sample {FEWEST} draws a random sample of queries",
        )
    scores = {
        label: _scores(answers, people, model, there, elsewhere, measure, rel) for label, answers in rankings.items()
    }
    rows = [_estimate(label, scores[label], Bounded() if measure.bounded else Unbounded()) for label in rankings]
    means = {label: float(by_people.mean()) for label, (by_people, _, _) in scores.items()}
    pairs = [
        _estimate(
            f"{a} − {b}",
            tuple(x - y for x, y in zip(scores[a], scores[b], strict=True)),
            BoundedDifference(means[a], means[b]) if measure.bounded else Unbounded(),
        )
        for a, b in combinations(rankings, 2)
    ]
    return Correction(measure, len(asked), len(there), rows, pairs)


def _scores(
    answers: Mapping[str, Ranking],
    people: Judgments,
    model: Judgments,
    there: Sequence[str],
    elsewhere: Sequence[str],
    measure: Measure,
    rel: int,
) -> tuple[Values, Values, Values]:
    by_people = score_queries(join(answers, people, there), [measure], rel)[measure]
    by_model = score_queries(join(answers, model, [*there, *elsewhere]), [measure], rel)[measure]
    return by_people, by_model[: len(there)], by_model[len(there) :]


def _estimate(what: str, scores: tuple[Values, ...], kind: Kind) -> Corrected:
    people, there, elsewhere = scores
    return Corrected(
        what,
        mean_estimate(people, kind),
        correct_mean(people, there, elsewhere, kind),
        mean_estimate(np.concatenate([there, elsewhere]), kind),
    )
