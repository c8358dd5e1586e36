"""Inter-annotator agreement beyond chance, and adjudication of disagreements, one pair at a time.

Cohen's κ for two, Fleiss' κ and Krippendorff's α for more, with intervals. Each statistic is a function of sums over
pairs. So a bootstrap sample is a weighted sum, and all samples are one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.core.files import read_json
from bakeoff.extensions.testsets.annotations import AdjudicatedPair, Annotation, QueryDocument
from bakeoff.extensions.testsets.task_folder import TaskFolder
from bakeoff.statistics.constants import NOISE, SEED
from bakeoff.statistics.intervals import RESAMPLES, bca_of_sums

KappaWeighting = Literal["plain", "linear", "quadratic"]
MISSING = -1


class Coefficient(msgspec.Struct, frozen=True):
    """A statistic with its 95% interval; None if undefined, as when everyone always gave the same grade.

    Without any disagreement all resamples are alike. Then there is no interval, rather than one of width 0.
    """

    value: float | None
    low: float | None = None
    high: float | None = None


class TwoWay(msgspec.Struct, frozen=True):
    """Two annotators: the share of equal grades, κ by three weightings, and the confusion matrix."""

    a: str
    b: str
    pairs: int
    equal: float
    plain: Coefficient
    linear: Coefficient
    quadratic: Coefficient
    confusion: list[list[int]]


class Disagreement(msgspec.Struct, frozen=True):
    """A pair that got more than one grade."""

    query: str
    document: str
    grades: dict[str, int]

    @property
    def spread(self) -> int:
        """The highest grade minus the lowest."""
        return max(self.grades.values()) - min(self.grades.values())


class Agreement(msgspec.Struct, frozen=True):
    """All statistics of a set of annotators, and the pairs they disagree on."""

    annotators: list[str]
    pairs: int
    two: list[TwoWay]
    fleiss: Coefficient
    fleiss_pairs: int
    alpha: Coefficient
    worst: list[Disagreement]


def agreement(
    given: Mapping[str, Mapping[tuple[str, str], int]], scale: int = 4, *, seed: int = SEED, resamples: int = RESAMPLES
) -> Agreement:
    """Compare all annotators. Queries are resampled, since grades within a query are not independent."""
    names = list(given)
    pairs = sorted({pair for grades in given.values() for pair in grades})
    table = np.array([[given[name].get(pair, MISSING) for name in names] for pair in pairs], dtype=np.int64)
    table = table.reshape(len(pairs), len(names))
    groups = _groups([query for query, _ in pairs])

    def estimate(parts: Values, statistic: Callable[[Values], Values], keep: NDArray[np.bool_]) -> Coefficient:
        if not keep.any():
            return Coefficient(None)
        return _estimate(parts[keep].reshape(int(keep.sum()), -1), groups[keep], statistic, seed, resamples)

    two = []
    for i, j in combinations(range(len(names)), 2):
        keep = (table[:, i] >= 0) & (table[:, j] >= 0)
        cells = _confusions(table[:, i], table[:, j], scale)
        by_weight = {
            name: estimate(cells, _of_tables(lambda t, name=name: kappa(t, name), scale), keep)  # type: ignore[misc]
            for name in ("plain", "linear", "quadratic")
        }
        counts = cells[keep].sum(axis=0)
        equal = float(np.trace(counts) / counts.sum()) if keep.any() else float("nan")
        two.append(
            TwoWay(names[i], names[j], int(keep.sum()), equal, **by_weight, confusion=counts.astype(int).tolist())
        )
    full = np.asarray((table >= 0).all(axis=1)) & (len(names) > 1)
    counts_by_pair = _counts(table, scale)
    several = counts_by_pair.sum(axis=1) > 1
    return Agreement(
        annotators=names,
        pairs=len(pairs),
        two=two,
        fleiss=estimate(fleiss_parts(counts_by_pair), lambda s: fleiss_of_sums(s, len(names)), full),
        fleiss_pairs=int(full.sum()),
        alpha=estimate(coincidences(counts_by_pair), _of_tables(ordinal_alpha, scale), several),
        worst=disagreements(given),
    )


def most_unequal(pairs: int, level: float = 0.95) -> float:
    """Upper bound (95%) of the share of unequal pairs if none of `pairs` independent pairs differs."""
    return float(1 - (1 - level) ** (1 / pairs))


def disagreements(given: Mapping[str, Mapping[tuple[str, str], int]]) -> list[Disagreement]:
    """Pairs that got more than one grade, largest spread first."""
    pairs = sorted({pair for grades in given.values() for pair in grades})
    graded = [
        Disagreement(*pair, {name: grades[pair] for name, grades in given.items() if pair in grades}) for pair in pairs
    ]
    apart = (pair for pair in graded if pair.spread)
    return sorted(apart, key=lambda pair: (-pair.spread, pair.query, pair.document))


def kappa(tables: Values, weights: KappaWeighting = "plain") -> Values:
    """Cohen's κ of confusion matrices (…, grades, grades): 1 − observed / expected disagreement."""
    scale = tables.shape[-1]
    apart = np.abs(np.subtract.outer(np.arange(scale), np.arange(scale))).astype(np.float64)
    cost = {"plain": (apart > 0).astype(np.float64), "linear": apart, "quadratic": apart**2}[weights]
    total = tables.sum(axis=(-2, -1))
    expected = tables.sum(axis=-1)[..., :, None] * tables.sum(axis=-2)[..., None, :]
    observed, chance = (tables * cost).sum(axis=(-2, -1)), (expected * cost).sum(axis=(-2, -1))
    return 1 - _divide(observed * total, chance)


def fleiss(counts: Values) -> float:
    """Fleiss' κ of a table of pairs × grades that counts how often each grade was given."""
    raters = int(counts[0].sum())
    return float(fleiss_of_sums(fleiss_parts(counts).sum(axis=0)[None, :], raters)[0])


def fleiss_parts(counts: Values) -> Values:
    """The terms of Fleiss' κ: per pair, the number of agreeing annotator pairs and the count of each grade."""
    equal = (counts * (counts - 1)).sum(axis=1, keepdims=True)
    return np.concatenate((np.ones((len(counts), 1)), equal, counts), axis=1)


def fleiss_of_sums(sums: Values, raters: int) -> Values:
    """κ from rows of (pairs, agreeing annotator pairs, count of each grade…)."""
    pairs, equal, grades = sums[:, 0], sums[:, 1], sums[:, 2:]
    observed = _divide(equal, pairs * raters * (raters - 1))
    shares = _divide(grades, (pairs * raters)[:, None])
    chance = (shares**2).sum(axis=1)
    return _divide(observed - chance, 1 - chance)


def coincidences(counts: Values) -> Values:
    """Krippendorff's coincidence matrix of each pair: its ordered pairs of grades over the number of grades − 1."""
    given = counts.sum(axis=1)
    two_by_two = counts[:, :, None] * counts[:, None, :]
    two_by_two -= counts[:, :, None] * np.eye(counts.shape[1])
    return np.where(given[:, None, None] > 1, two_by_two / np.maximum(given - 1, 1)[:, None, None], 0.0)


def ordinal_alpha(tables: Values) -> Values:
    """Krippendorff's α of coincidence matrices with the ordinal distance."""
    totals = tables.sum(axis=-1)
    n = totals.sum(axis=-1)
    below = np.cumsum(totals, axis=-1)
    middle = below - totals / 2  # mean rank of a grade
    distance = (middle[..., :, None] - middle[..., None, :]) ** 2
    observed = (tables * distance).sum(axis=(-2, -1))
    chance = (totals[..., :, None] * totals[..., None, :] * distance).sum(axis=(-2, -1))
    return 1 - _divide(observed * (n - 1), chance)


def _estimate(
    parts: Values, groups: NDArray[np.int64], statistic: Callable[[Values], Values], seed: int, resamples: int
) -> Coefficient:
    _, place = np.unique(groups, return_inverse=True)
    sums = np.zeros((int(place.max()) + 1, parts.shape[1]))
    np.add.at(sums, place, parts)
    if len(sums) == 1:
        sums = parts  # a single query: resample its pairs instead
    value, low, high = bca_of_sums(sums, statistic, resamples=resamples, seed=seed)
    if high - low <= NOISE:
        low = high = float("nan")
    return Coefficient(*(None if np.isnan(figure) else float(figure) for figure in (value, low, high)))


def _of_tables(statistic: Callable[[Values], Values], scale: int) -> Callable[[Values], Values]:
    return lambda sums: statistic(sums.reshape(-1, scale, scale))


def _confusions(a: NDArray[np.int64], b: NDArray[np.int64], scale: int) -> Values:
    """One matrix per pair, with a single 1 if both graded it."""
    cells = np.zeros((len(a), scale, scale))
    both = np.flatnonzero((a >= 0) & (b >= 0))
    cells[both, a[both], b[both]] = 1
    return cells


def _counts(table: NDArray[np.int64], scale: int) -> Values:
    return np.stack([(table == grade).sum(axis=1) for grade in range(scale)], axis=1).astype(np.float64)


def _groups(names: Sequence[str]) -> NDArray[np.int64]:
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], dtype=np.int64)


def _divide(part: NDArray[Any], whole: NDArray[Any]) -> Values:
    """NaN where the divisor is 0, since the statistic is undefined there."""
    answer = np.full(np.broadcast_shapes(part.shape, whole.shape), np.nan)
    np.divide(part, whole, out=answer, where=np.broadcast_to(whole != 0, answer.shape))
    return answer


class PairDecision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of a file of decisions."""

    query_id: str
    document_id: int | str = msgspec.field(name="page_id")
    grade: int
    why: str = ""


@dataclass(slots=True)
class Adjudication:
    """The pairs of a task that annotators disagree on, and the decisions so far."""

    folder: TaskFolder
    _decided: dict[QueryDocument, AdjudicatedPair] = field(init=False)
    _given: dict[str, dict[QueryDocument, int]] = field(init=False)

    def __post_init__(self) -> None:
        self._decided = {(entry.query_id, str(entry.document_id)): entry for entry in self.folder.read_adjudications()}
        self._given = select_grades(self.folder.annotators())

    def open(self) -> list[Disagreement]:
        """Pairs with more than one grade and no decision, largest spread first.

        A decision holds for the grades it lists. If an annotator changes one, the pair is open again.
        """
        return [
            pair
            for pair in disagreements(self._given)
            if (entry := self._decided.get((pair.query, pair.document))) is None or entry.grades != pair.grades
        ]

    def decide(self, query: str, document: str, grade: int, why: str = "") -> None:
        """Write one decision to disk."""
        self._decided[query, document] = self._settle(query, document, grade, why)
        self.folder.write_adjudicated(self._decided.values())

    def _settle(self, query: str, document: str, grade: int, why: str) -> AdjudicatedPair:
        self.folder.check(query, document, grade)
        pair = (query, document)
        given = {name: grades[pair] for name, grades in self._given.items() if pair in grades}
        if not given:
            raise InputError(f"no one has graded {query}, {document}", remedy="grade it first with `bakeoff annotate`")
        return AdjudicatedPair(query_id=query, document_id=document, grades=given, grade=grade, why=why)

    def decide_from(self, path: Path) -> int:
        """Take all decisions of a JSON file, or none if one is invalid."""
        decisions = read_json(path, list[PairDecision])
        settled: dict[QueryDocument, AdjudicatedPair] = {}
        for place, decision in enumerate(decisions):
            pair = (decision.query_id, str(decision.document_id))
            try:
                settled[pair] = self._settle(*pair, decision.grade, decision.why)
            except InputError as error:
                raise InputError(error.problem, file=path, place=f"$[{place}]", remedy=error.remedy) from None
        self._decided |= settled
        self.folder.write_adjudicated(self._decided.values())
        return len(decisions)

    def ask(self, ask: Callable[[Disagreement], tuple[int, str] | None]) -> int:
        """Ask about every open pair; None from `ask` leaves it open."""
        decided = 0
        for pair in self.open():
            answer = ask(pair)
            if answer is not None:
                self.decide(pair.query, pair.document, *answer)
                decided += 1
        return decided


def select_grades(annotators: Mapping[str, Annotation]) -> dict[str, dict[QueryDocument, int]]:
    """Keep people's grades, and models' only for pairs that no person graded."""
    by_people = {
        pair for annotation in annotators.values() if annotation.kind == "person" for pair in annotation.pairs()
    }
    return {
        name: {
            pair: grade
            for pair, grade in annotation.pairs().items()
            if annotation.kind == "person" or pair not in by_people
        }
        for name, annotation in annotators.items()
    }
