"""Audit a judge model: its agreement with people, and whether its errors could change the winner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.core.progress import Progress, silent
from bakeoff.core.task import Drawn
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.ranked_grades import find_judged
from bakeoff.evaluation.score import score_queries
from bakeoff.extensions.testsets.agreement import TwoWay, agreement
from bakeoff.extensions.testsets.annotations import QueryDocument
from bakeoff.extensions.testsets.pool import Rankings
from bakeoff.statistics.averaging import averaging_of
from bakeoff.statistics.constants import SEED

SAMPLES = 1000
PRIOR = 0.5  # pseudo-count of every grade (Jeffreys prior)


class Audit(msgspec.Struct, frozen=True):
    """Agreement on the pairs that both graded, and the winners over all pairs that the judge graded.

    `given` counts all of the judge's grades. The confusion matrix covers only pairs that people graded too.
    """

    judge: str
    given: dict[int, int]
    agreement: TwoWay
    measure: str
    means: dict[str, float]
    winner: str
    samples: int
    winners: dict[str, int]
    by_traffic: bool

    @property
    def another(self) -> int:
        """Number of samples with another winner."""
        return self.samples - self.winners.get(self.winner, 0)


def audit(
    judge: str,
    judged: Mapping[QueryDocument, int],
    people: Mapping[QueryDocument, int],
    rankings: Rankings,
    measure: Measure,
    rel: int,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
    progress: Progress = silent,
    drawn: Mapping[str, Drawn] = {},
) -> Audit:
    """Sample the grades that people would have given, and count how often each contender wins.

    Each sample first draws the distribution of people's grades given the judge's. The fewer pairs people graded, the
    wider this varies. Then every pair that only the judge graded gets a grade from it. People's own grades are kept.
    Queries are not resampled, so the result shows the uncertainty of the judge alone.
    """
    both = [pair for pair in judged if pair in people]
    if not both:
        raise InputError(f"no pair was graded by both {judge} and people", remedy="let people grade some of its pairs")
    queries = sorted({query for query, _ in judged})
    scale = 1 + max(*judged.values(), *(people[pair] for pair in both))
    compared = agreement({judge: {p: judged[p] for p in both}, "people": {p: people[p] for p in both}}, scale)
    weights = averaging_of([drawn.get(query) for query in queries]).weights
    table = _ScoreTable(rankings, queries, list(judged), weights)
    given = np.array([judged[pair] for pair in judged])
    means = table.means(given, measure, rel)
    labels = list(rankings)
    winner = labels[int(np.argmax(means))]
    known = np.array([people.get(pair, -1) for pair in judged])
    counts = np.array(compared.two[0].confusion, dtype=np.float64)
    rng = np.random.default_rng(seed)
    winners: Counter[str] = Counter()
    with progress("samples", samples) as advance:
        for _ in range(samples):
            values = table.means(_as_people(given, known, counts, rng), measure, rel)
            # A tie keeps the winner.
            best = int(np.argmax(values))
            held = labels.index(winner)
            winners[labels[best] if values[best] > values[held] + 1e-12 else winner] += 1
            advance(1)
    return Audit(
        judge=judge,
        given=dict(sorted(Counter(given.tolist()).items())),
        agreement=compared.two[0],
        measure=str(measure),
        means={label: measure.figure(mean) for label, mean in zip(labels, means.tolist(), strict=True)},
        winner=winner,
        samples=samples,
        winners=dict(winners.most_common()),
        by_traffic=weights is not None,
    )


def _as_people(
    given: NDArray[np.int64], known: NDArray[np.int64], counts: Values, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw people's grades for each of the judge's (rows of counts) from a Dirichlet posterior.

    The prior keeps every error possible, even those that were never seen.
    """
    drawn = given.copy()
    for grade in np.unique(given):
        shares = rng.dirichlet(counts[grade] + PRIOR)
        places = np.flatnonzero((given == grade) & (known < 0))
        drawn[places] = rng.choice(len(shares), size=len(places), p=shares)
    return np.where(known >= 0, known, drawn)


class _ScoreTable:
    """Where the judged documents are in the rankings, found once; a sample changes only the grades."""

    def __init__(
        self, rankings: Rankings, queries: list[str], pairs: list[QueryDocument], weights: Values | None
    ) -> None:
        numbers: dict[str, dict[str, int]] = {query: {} for query in queries}
        for number, (query, document) in enumerate(pairs):
            numbers[query][document] = number
        asked = {f"{at} {query}": (run, query) for at, run in enumerate(rankings.values()) for query in queries}
        answers = {name: run[query] for name, (run, query) in asked.items() if query in run}
        judged = [numbers[query] for _, query in asked.values()]
        self._places = find_judged(answers, judged, list(asked))
        self._pairs = np.array([number for documents in judged for number in documents.values()])
        self._shape, self._weights = (len(rankings), len(queries)), weights

    def means(self, grades: NDArray[np.int64], measure: Measure, rel: int) -> NDArray[np.float64]:
        """Each contender's mean under these grades, weighted by traffic if weights are given."""
        graded = self._places.grade(grades[self._pairs])
        scores: NDArray[np.float64] = score_queries(graded, [measure], rel)[measure].reshape(self._shape)
        return np.asarray(np.average(scores, axis=1, weights=self._weights), dtype=np.float64)
