"""Compares contenders within a result or between results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, count, product
from pathlib import Path
from string import ascii_uppercase
from typing import NamedTuple

import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.arrays import Values
from bakeoff.core.facts import Fact, fact
from bakeoff.core.figures import PairedDifference
from bakeoff.evaluation.measures import Measure
from bakeoff.lineup.checks import match_labels
from bakeoff.results.result import Result, load
from bakeoff.results.verdict import JUDGED_ENOUGH
from bakeoff.statistics.averaging import Averaging, fewest_for_equivalence
from bakeoff.statistics.columns import differences_of, table_of
from bakeoff.statistics.compare import compare_chosen, relation
from bakeoff.statistics.constants import ALPHA
from bakeoff.statistics.tests import first_equal, hypothesis_of


class Change(NamedTuple):
    """One query on which two contenders differ."""

    query: str
    text: str
    a: float
    b: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Pairs on one measure, over the queries of one task.

    `tested` are the pairs that Holm's correction covers. Displaying fewer contenders does not weaken it.
    """

    measure: Measure
    queries: Mapping[str, str]
    scores: Mapping[str, Values]
    pairs: Sequence[PairedDifference]
    averaging: Averaging
    tested: Sequence[tuple[str, str]]
    equivalent_within: float | None = None
    unmatched: Sequence[Fact] = ()  # rows in only one of the results
    letters: Mapping[str, str] = field(default_factory=dict)  # short names of the results
    open: Set[tuple[str, str]] = frozenset()  # pairs of one result that differ, but that further grades could turn

    @property
    def p_equivalent(self) -> list[float]:
        """The Holm-adjusted p of equivalence within the margin, per pair; empty without a margin."""
        if self.equivalent_within is None:
            return []
        differences = [differences_of(self.scores[a], self.scores[b]) for a, b in self.tested]
        adjusted = self.averaging.p_equivalent(differences, self.equivalent_within, bounded=self.measure.bounded)
        p = dict(zip(self.tested, adjusted.tolist(), strict=True))
        return [p[pair.a, pair.b] for pair in self.pairs]

    @property
    def queries_for_equivalence(self) -> int | None:
        """The queries needed to show equivalence of the least varying pair; None without a margin."""
        if self.equivalent_within is None or not self.measure.bounded:
            return None
        first = self.first_alike
        pairs = [(self.scores[pair.a], self.scores[pair.b]) for pair in self.pairs if first[pair.a] != first[pair.b]]
        return fewest_for_equivalence(pairs, self.equivalent_within, self.averaging)

    @property
    def relations(self) -> list[str]:
        """Per pair: a is better, worse, equivalent within the margin, or undecided."""
        return [
            relation(pair.difference, pair.p_holm, p) for pair, p in zip(self.pairs, self.p_equivalent, strict=False)
        ]

    @property
    def means(self) -> dict[str, float]:
        """The mean of each side."""
        shown = {label for pair in self.pairs for label in (pair.a, pair.b)}
        return {
            label: self.measure.figure(self.averaging.mean(values))
            for label, values in self.scores.items()
            if label in shown
        }

    @property
    def first_alike(self) -> dict[str, str]:
        """Per side, the first side with the same score on every query."""
        names = list(self.scores)
        return {
            name: names[at] for name, at in zip(names, first_equal(table_of(list(self.scores.values()))), strict=True)
        }

    @property
    def distinct(self) -> int:
        """The pairs that Holm's correction counts: equal differences once, zero differences never."""
        rows = len(self.scores)
        if len(self.tested) < rows * (rows - 1) // 2:
            asked = {hypothesis_of(differences_of(self.scores[a], self.scores[b])) for a, b in self.tested}
            return len(asked - {None})
        alike = len(set(self.first_alike.values()))
        return alike * (alike - 1) // 2

    @property
    def by_traffic(self) -> bool:
        """Whether queries are weighted by traffic."""
        return self.averaging.weights is not None

    def changed_most(self, pair: PairedDifference, most: int) -> list[Change]:
        """The queries with the largest absolute differences; ties in the order of the task."""
        a, b = self.scores[pair.a], self.scores[pair.b]
        differences = differences_of(a, b)
        order = np.argsort(-np.abs(differences), kind="stable")[:most]
        asked = list(self.queries)
        return [
            Change(asked[at], self.queries[asked[at]], float(a[at]), float(b[at]))
            for at in order.tolist()
            if differences[at]
        ]


def read_results(folders: Sequence[Path]) -> list[Result]:
    """Results with distinct names."""
    short = [folder.resolve().name for folder in folders]
    names = [str(path) if short.count(name) > 1 else name for path, name in zip(folders, short, strict=True)]
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise InputError("a result is given twice", file=names[0], remedy="give each result once")
    return [load(path, name) for path, name in zip(folders, names, strict=True)]


def other_grades(a: Result, b: Result) -> list[str]:
    """Queries of both results whose grades differ."""
    mine, yours = a.detailed.queries, b.detailed.queries
    return [query for query in mine if query in yours and mine[query].grades != yours[query].grades]


class NotComparable(InputError):
    """Results of different tasks; `reasons` are the differences."""

    def __init__(self, first: str, other: str, reasons: Sequence[Fact]) -> None:
        self.first, self.reasons = first, list(reasons)
        parts = dict.fromkeys(reason.id.removeprefix("other_").replace("_", " ") for reason in reasons)
        super().__init__(f"can't be compared with {first}: other {', '.join(parts)}", file=other)


def why_not(a: Result, b: Result, *, grades: bool = True) -> list[Fact]:
    """The reasons why two results can't be compared; empty if they can.

    Without `grades`, different grades are no reason, as rankings can be rescored.
    """
    if a.summary.task.fingerprint == b.summary.task.fingerprint:
        return []
    mine, yours = a.detailed, b.detailed
    reasons = []
    counts = a.summary.task.documents, b.summary.task.documents
    # A title is stored only for a document that occurs in a ranking or a judgment.
    if counts[0] != counts[1] or (len(mine.titles), len(yours.titles)) == counts:
        if lost := set(mine.titles) ^ set(yours.titles):
            reasons.append(fact("other_documents", count=len(lost), example=min(lost)))
        elif counts[0] != counts[1]:
            reasons.append(fact("other_number_of_documents", first=counts[0], second=counts[1]))
    if lost := set(mine.queries) ^ set(yours.queries):
        reasons.append(fact("other_queries", count=len(lost), example=min(lost)))
    both = [query for query in mine.queries if query in yours.queries]
    if other := [query for query in both if mine.queries[query].text != yours.queries[query].text]:
        reasons.append(fact("other_query_texts", count=len(other), example=other[0]))
    regraded, rels = other_grades(a, b), (a.summary.task.rel, b.summary.task.rel)
    if not grades and (regraded or rels[0] != rels[1]):
        return reasons
    if regraded:
        reasons.append(fact("other_grades", count=len(regraded), example=regraded[0]))
    if rels[0] != rels[1]:
        reasons.append(fact("other_threshold", first=rels[0], second=rels[1]))
    tasks = [f"{each.summary.task.name} ({each.summary.task.fingerprint})" for each in (a, b)]
    return reasons or [fact("other_texts_or_categories", tasks=tasks)]


def compare_results(
    results: Sequence[Result],
    measure: Measure | str | None = None,
    contenders: Sequence[str] = (),
    *,
    all_pairs: bool = False,
    equivalent_within: float | None = None,
    lettered: bool = False,
) -> Comparison:
    """All pairs within one result; for several, each contender against itself in the first.

    `lettered` names results A, B, C, …, because their names are long.
    """
    _check_comparable(results)
    first, alone = results[0], len(results) == 1
    measure = first.deciding(measure)
    chosen = _choose(contenders, results)
    letters = dict(zip(_letters(), (result.name for result in results), strict=False)) if lettered and not alone else {}
    shown = {result.name: "" if alone else result.name for result in results}
    shown |= {name: letter for letter, name in letters.items()}
    scores = {
        _side(label, shown[result.name]): result.values(label, measure) for result in results for label in result.labels
    }
    sides = Comparison(
        measure, first.queries, scores, [], first.averaging(), [], equivalent_within, letters=letters
    )  # fmt: skip
    if alone or all_pairs:
        if lost := [result for result in results if result.summary.verdict.leader is None]:
            raise InputError(
                "its rows can't be compared with each other", file=lost[0].name, remedy="bakeoff show explains why"
            )
        among = {_side(label, shown[result.name]) for result in results for label in chosen}
        compared = _each_with_each(sides, among, first.name)
        return replace(compared, open=_open_pairs(compared, first)) if alone else compared
    return _with_the_first(sides, results, chosen, shown)


def _check_comparable(results: Sequence[Result]) -> None:
    """Checks that results have distinct names and the same task."""
    if not results:
        raise InputError("there is no result to compare", remedy="name at least one")
    first = results[0]
    if len({result.name for result in results}) < len(results):
        raise InputError("two results have the same name", file=first.name, remedy="name one with load(folder, name)")
    for other in results[1:]:
        if reasons := why_not(first, other):
            raise NotComparable(first.name, other.name, reasons)


def _choose(contenders: Sequence[str], results: Sequence[Result]) -> set[str]:
    """The chosen labels, in any of the results; by default all."""
    names: dict[str, set[str]] = {}
    for result in results:
        for label, known in result.names.items():
            names[label] = names.get(label, set()) | known
    return set(match_labels(contenders, names))


def _each_with_each(sides: Comparison, among: Set[str], name: str) -> Comparison:
    """All pairs of one result, or of all sides of several."""
    pairs = sides.averaging.pairs(sides.scores, among=among, bounded=sides.measure.bounded)
    if not pairs:
        raise InputError("there is only one contender", file=name, remedy="name a second result")
    return replace(sides, pairs=pairs, tested=list(combinations(sides.scores, 2)))


def _open_pairs(comparison: Comparison, result: Result) -> Set[tuple[str, str]]:
    """Pairs whose lower row lacks grades that could put it above the other."""
    bounds = {row.label: row.bounds.get(str(comparison.measure)) for row in result.summary.rows}
    lacking = {label for label, known in bounds.items() if known is not None and known.judged < JUDGED_ENOUGH}
    found = set()
    for pair in comparison.pairs:
        upper, lower = (pair.a, pair.b) if pair.difference > 0 else (pair.b, pair.a)
        if lower in lacking and pair.p_holm <= ALPHA and result.could_overtake(comparison.measure, lower, upper):
            found.add((pair.a, pair.b))
    return found


def _with_the_first(
    sides: Comparison, results: Sequence[Result], chosen: Set[str], shown: Mapping[str, str]
) -> Comparison:
    """Each contender against itself in the first result."""
    first, *others = results
    common = [(label, result) for result in others for label in result.labels if label in first.labels]
    if not any(label in chosen for label, _ in common):
        raise InputError("the results have no contender in common", remedy="--all-pairs compares each with each")
    tested = [(_side(label, shown[result.name]), _side(label, shown[first.name])) for label, result in common]
    compared = compare_chosen(sides.scores, tested, partial(sides.averaging.pairs, bounded=sides.measure.bounded))
    return replace(
        sides,
        pairs=[pair for pair, (label, _) in zip(compared, common, strict=True) if label in chosen],
        tested=tested,
        unmatched=[alone for result in others for alone in _list_unmatched(first, result, chosen, shown)],
    )


def _list_unmatched(first: Result, other: Result, chosen: Set[str], shown: Mapping[str, str]) -> list[Fact]:
    """Rows that only one of two results has, which are not compared."""
    return [
        fact("not_compared", labels=alone, result=shown[result.name])
        for result, rest in ((first, other), (other, first))
        if (alone := [label for label in result.labels if label in chosen and label not in rest.labels])
    ]


def _side(label: str, result: str) -> str:
    return f"{label} ({result})" if result else label


def _letters() -> Iterator[str]:
    """A to Z, then AA to ZZ, and so on."""
    return ("".join(part) for length in count(1) for part in product(ascii_uppercase, repeat=length))
