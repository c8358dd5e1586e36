"""Can a judge model stand in for people? Its agreement with them, and whether its errors could change the winner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.progress import Progress, silent
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import join_arrays, score_queries
from bakeoff.statistics.constants import SEED
from bakeoff.testsets.agreement import TwoWay, agreement
from bakeoff.testsets.annotations import QueryDocument
from bakeoff.testsets.pool import Rankings

SAMPLES = 1000


class Audit(msgspec.Struct, frozen=True):
    """The judge against the people on what both graded, and the winners over all that the judge graded."""

    judge: str
    agreement: TwoWay
    measure: str
    means: dict[str, float]
    winner: str
    samples: int
    winners: dict[str, int]

    @property
    def another(self) -> int:
        """In how many samples the winner was another one."""
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
) -> Audit:
    """Draws what people would have given for each of the judge's grades, once per sample, and names the winner.

    Each sample first draws anew the pairs that people graded too, so that a small subset leaves much open; then every
    pair that only the judge graded gets a person's grade of one of those to which the judge gave the same. Where people
    graded, their grade counts. The queries stay as they are: this is the judge's doubt alone.
    """
    both = [pair for pair in judged if pair in people]
    if not both:
        raise InputError(f"no pair was graded both by {judge} and by people", remedy="let people grade some of them")
    queries = sorted({query for query, _ in judged})
    scale = 1 + max(*judged.values(), *(people[pair] for pair in both))
    compared = agreement({judge: {p: judged[p] for p in both}, "people": {p: people[p] for p in both}}, scale)
    table = _ScoreTable(rankings, queries, list(judged))
    given = np.array([judged[pair] for pair in judged])
    means = table.means(given, measure, rel)
    labels = list(rankings)
    winner = labels[int(np.argmax(means))]
    known = np.array([people.get(pair, -1) for pair in judged])
    seen = np.array([[judged[pair], people[pair]] for pair in both])
    rng = np.random.default_rng(seed)
    winners: Counter[str] = Counter()
    with progress("samples", samples) as advance:
        for _ in range(samples):
            drawn = _as_people(given, known, seen[rng.integers(0, len(seen), len(seen))], rng)
            values = table.means(drawn, measure, rel)
            # A tie keeps the winner: another one must be better.
            best = int(np.argmax(values))
            held = labels.index(winner)
            winners[labels[best] if values[best] > values[held] + 1e-12 else winner] += 1
            advance(1)
    return Audit(
        judge=judge,
        agreement=compared.two[0],
        measure=str(measure),
        means=dict(zip(labels, means.tolist(), strict=True)),
        winner=winner,
        samples=samples,
        winners=dict(winners.most_common()),
    )


def _as_people(
    given: NDArray[np.int64], known: NDArray[np.int64], seen: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """For each of the judge's grades, a person's grade from the pairs to which the judge gave that same grade.

    One count more for agreeing, so that a grade that people never saw is not taken for infallible or for noise.
    """
    drawn = given.copy()
    for grade in np.unique(given):
        answers = np.append(seen[seen[:, 0] == grade, 1], grade)
        places = np.flatnonzero((given == grade) & (known < 0))
        drawn[places] = answers[rng.integers(0, len(answers), len(places))]
    return np.where(known >= 0, known, drawn)


class _ScoreTable:
    """The rankings as arrays, laid out once: a sample then only changes the grades."""

    def __init__(self, rankings: Rankings, queries: list[str], pairs: list[QueryDocument]) -> None:
        ids = {pair[1] for pair in pairs}
        ids |= {document for answers in rankings.values() for ranking in answers.values() for document in ranking.ids}
        number = {document: place for place, document in enumerate(sorted(ids))}
        row_of = {query: place for place, query in enumerate(queries)}
        answers = [run.get(query) for run in rankings.values() for query in queries]
        width = max((len(ranking) for ranking in answers if ranking is not None), default=0)
        self._documents = np.full((len(answers), max(width, 1)), -1, dtype=np.int64)
        for row, ranking in enumerate(answers):
            if ranking is not None:
                self._documents[row, : len(ranking)] = [number[document] for document in ranking.ids]
        contenders = np.arange(len(rankings))[:, None] * len(queries)
        self._rows = (np.array([row_of[query] for query, _ in pairs])[None, :] + contenders).ravel()
        self._judged = np.tile(np.array([number[document] for _, document in pairs]), len(rankings))
        self._shape = (len(rankings), len(queries))

    def means(self, grades: NDArray[np.int64], measure: Measure, rel: int) -> NDArray[np.float64]:
        """Each contender's mean under these grades."""
        joined = join_arrays(self._documents, self._rows, self._judged, np.tile(grades, self._shape[0]))
        scores: NDArray[np.float64] = score_queries(joined, [measure], rel)[measure].reshape(self._shape)
        return np.asarray(scores.mean(axis=1), dtype=np.float64)
