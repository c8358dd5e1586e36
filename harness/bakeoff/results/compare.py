"""Results × results → pairs: what differs between contenders, or between two runs of the same one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.core.arrays import Values
from bakeoff.core.ranking import Ranking
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.metrics import evaluate
from bakeoff.evaluation.ranked_grades import join
from bakeoff.results.schema import ContenderResult, Detailed, Summary, read_detailed, read_summary
from bakeoff.statistics import tests as stats
from bakeoff.statistics.tests import Pair


@dataclass(frozen=True, slots=True)
class Result:
    """One result folder as comparisons need it."""

    name: str
    summary: Summary
    detailed: Detailed

    @property
    def labels(self) -> list[str]:
        """The contenders that ran."""
        return [contender.label for contender in self.detailed.contenders]

    def values(self, label: str, measure: Measure) -> Values:
        """Per query, as they were stored; a measure that was not stored is worked out from the stored rankings."""
        contender = self._contender(label)
        asked, name = list(self.detailed.queries), str(measure)
        if all(name in contender.queries[query].measures for query in asked):
            return np.array([contender.queries[query].measures[name] for query in asked])
        self._check_depth(label, measure)
        rankings = {query: Ranking(tuple(found.ids), tuple(found.scores)) for query, found in contender.queries.items()}
        grades = {query: info.grades for query, info in self.detailed.queries.items()}
        return evaluate(join(rankings, grades, asked), [measure], self.summary.task.rel)[measure]

    def _contender(self, label: str) -> ContenderResult:
        for contender in self.detailed.contenders:
            if contender.label == label:
                return contender
        for row in self.summary.rows:
            if row.label == label and row.not_run:
                raise InputError(f"{label} did not run: {row.not_run}", file=self.name)
        raise InputError(f"has no contender {label!r}", file=self.name, remedy=nearest(label, self.labels))

    def _check_depth(self, label: str, measure: Measure) -> None:
        depth = int(self.summary.lineup["depth"])
        if measure.k is not None and measure.k > depth:
            raise InputError(f"{measure} reads deeper than the {depth} places that were kept", file=self.name)
        if any(row.label == label and row.stable is False for row in self.summary.rows):
            raise InputError(f"{label} was not stable, and {measure} was not stored with its rounds", file=self.name)


class Change(NamedTuple):
    """One query on which two contenders differ."""

    query: str
    text: str
    a: float
    b: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Pairs on one measure, over the queries of one task."""

    measure: Measure
    queries: Mapping[str, str]
    scores: Mapping[str, Values]
    pairs: Sequence[Pair]

    @property
    def means(self) -> dict[str, float]:
        """The mean of each side."""
        return {label: float(values.mean()) for label, values in self.scores.items()}

    def changed_most(self, pair: Pair, most: int) -> list[Change]:
        """The queries with the largest differences, either way; equal ones in the order of the task."""
        a, b = self.scores[pair.a], self.scores[pair.b]
        differences = stats.differences_of(a, b)
        order = np.argsort(-np.abs(differences), kind="stable")[:most]
        asked = list(self.queries)
        return [
            Change(asked[at], self.queries[asked[at]], float(a[at]), float(b[at]))
            for at in order.tolist()
            if differences[at]
        ]


def read_results(folders: Sequence[Path]) -> list[Result]:
    """The results with names that tell them apart."""
    short = [folder.resolve().name for folder in folders]
    names = [str(path) if short.count(name) > 1 else name for path, name in zip(folders, short, strict=True)]
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise InputError("a result is given twice", file=names[0], remedy="name every result once")
    return [Result(name, read_summary(path), read_detailed(path)) for path, name in zip(folders, names, strict=True)]


def why_not(a: Result, b: Result) -> list[str]:
    """Why two results can't be compared; nothing when they can. Scores of other questions are other scores."""
    if a.summary.task.fingerprint == b.summary.task.fingerprint:
        return []
    mine, yours = a.detailed, b.detailed
    found = []
    if lost := set(mine.titles) ^ set(yours.titles):
        found.append(f"other documents: {len(lost)} are only in one of the two, such as {min(lost)!r}")
    if lost := set(mine.queries) ^ set(yours.queries):
        found.append(f"other queries: {len(lost)} are only in one of the two, such as {min(lost)!r}")
    both = [query for query in mine.queries if query in yours.queries]
    if other := [query for query in both if mine.queries[query].text != yours.queries[query].text]:
        found.append(f"other queries: {len(other)} have another text, such as {other[0]!r}")
    if other := [query for query in both if mine.queries[query].grades != yours.queries[query].grades]:
        found.append(f"other judgments: {len(other)} queries have other grades, such as {other[0]!r}")
    if a.summary.task.rel != b.summary.task.rel:
        found.append(f"another threshold: rel = {a.summary.task.rel} and {b.summary.task.rel}")
    tasks = " and ".join(f"{each.summary.task.name} ({each.summary.task.fingerprint})" for each in (a, b))
    return found or [f"other texts or categories: the tasks are {tasks}"]


def compare_results(
    results: Sequence[Result], measure: Measure, contenders: Sequence[str] = (), *, all_pairs: bool = False
) -> Comparison:
    """All pairs within one result; over several, each contender against itself in the first one."""
    first = results[0]
    for other in results[1:]:
        if reasons := why_not(first, other):
            raise InputError(f"can't be compared with {first.name}: {'; '.join(reasons)}", file=other.name)
    for label in contenders:
        if not any(label in result.labels for result in results):
            known = sorted({label for result in results for label in result.labels})
            raise InputError(f"no result has a contender {label!r}", remedy=nearest(label, known))
    wanted = [[label for label in result.labels if not contenders or label in contenders] for result in results]
    alone = len(results) == 1
    scores = {
        _side(label, result, alone=alone): result.values(label, measure)
        for result, labels in zip(results, wanted, strict=True)
        for label in labels
    }
    queries = {query: info.text for query, info in first.detailed.queries.items()}
    if alone or all_pairs:
        pairs = stats.compare(scores)
        if not pairs:
            raise InputError("there is only one contender", file=first.name, remedy="name a second result")
        return Comparison(measure, queries, scores, pairs)
    chosen = [
        (_side(label, result, alone=False), _side(label, first, alone=False))
        for result, labels in zip(results[1:], wanted[1:], strict=True)
        for label in labels
        if label in wanted[0]
    ]
    if not chosen:
        raise InputError("the results have no contender in common", remedy="--all-pairs compares each with each")
    return Comparison(measure, queries, scores, pairs_of(scores, chosen))


def pairs_of(scores: Mapping[str, Values], chosen: Sequence[tuple[str, str]]) -> list[Pair]:
    """The chosen pairs only: Holm's correction is over these."""
    pairs = [stats.compare({a: scores[a], b: scores[b]})[0] for a, b in chosen]
    adjusted = stats.holm([pair.p for pair in pairs])
    return [msgspec.structs.replace(pair, p_holm=float(p)) for pair, p in zip(pairs, adjusted, strict=True)]


def _side(label: str, result: Result, *, alone: bool) -> str:
    return label if alone else f"{label} ({result.name})"
