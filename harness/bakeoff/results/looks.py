"""Which look at a question a result is: planned with the task, or found among stored results."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.core.files import read_json
from bakeoff.core.task import Task
from bakeoff.results.schema import DETAILED, SUMMARY, Detailed, Look, find
from bakeoff.statistics.averaging import Averaging
from bakeoff.statistics.best_set import BestSet, Versus
from bakeoff.statistics.looks import Looks, best_set_at, versus_at

if TYPE_CHECKING:
    from bakeoff.running.runner import Outcome

MOST_QUERIES = 10_000  # beyond this a result does not keep which queries it had at which look
FEWEST_ROWS = 2  # that two results share, if they ask the same question


@dataclass(frozen=True, slots=True)
class QuestionLooks:
    """The looks so far, for the tests and for the verdict."""

    looks: Looks
    fact: Look


def planned_looks(task: Task) -> QuestionLooks | None:
    """The planned look that a task's queries belong to."""
    return _planned(list(task.planned_looks), len(task.queries)) if task.planned_looks else None


def _planned(plan: list[int], queries: int) -> QuestionLooks:
    number = plan.index(queries) + 1
    joined = np.repeat(np.arange(1, number + 1), np.diff([0, *plan[:number]]))
    return QuestionLooks(
        Looks(joined, [n / plan[-1] for n in plan[:number]]), Look(number=number, queries=plan, planned=True)
    )


def stored_looks(fact: Look | None, detailed: Detailed) -> QuestionLooks | None:
    """Looks as a result stores them."""
    if fact is None:
        return None
    if fact.planned:
        return _planned(fact.queries, fact.queries[fact.number - 1])
    joined = [info.look for info in detailed.queries.values()]
    return QuestionLooks(Looks(np.array([look or 1 for look in joined])), fact)


class _EarlierRow(msgspec.Struct):
    label: str


class _EarlierTask(msgspec.Struct):
    name: str
    kind: str


class _EarlierVerdict(msgspec.Struct):
    measure: str = ""


class _Earlier(msgspec.Struct):
    task: _EarlierTask
    rows: list[_EarlierRow]
    verdict: _EarlierVerdict


class _Info(msgspec.Struct):
    grades: dict[str, int] = {}


class _Queries(msgspec.Struct):
    queries: dict[str, _Info]


def earlier_looks(outcome: Outcome, out: Path) -> QuestionLooks | None:
    """Earlier looks; None at a first look, or if looks are planned.

    An earlier look is a result in the same folder with the same task and deciding measure, two of the same rows, and a
    proper subset of the graded queries. Ungraded queries count once they are graded.
    """
    task = outcome.task
    here = _graded({query.id: task.judgments.get(query.id, {}) for query in task.queries})
    if task.planned_looks or len(task.queries) > MOST_QUERIES or not out.is_dir():
        return None
    labels = {row.contender.label for row in outcome.ran}
    seen = {
        queries
        for folder in find(out)
        if _asks_the_same(folder, task, str(outcome.lineup.primary), labels)
        and (queries := _queries_of(folder))
        and queries < here
    }
    chain: list[frozenset[str]] = []
    for queries in sorted(seen, key=len):
        if not chain or chain[-1] < queries:
            chain.append(queries)
    if not chain:
        return None
    joined = np.array(
        [
            next((look for look, had in enumerate(chain, start=1) if query.id in had), len(chain) + 1)
            for query in task.queries
        ]
    )
    numbers = [*map(len, chain), len(here)]
    return QuestionLooks(Looks(joined), Look(number=len(numbers), queries=numbers, planned=False))


def _asks_the_same(folder: Path, task: Task, measure: str, labels: AbstractSet[str]) -> bool:
    try:
        earlier = read_json(folder / SUMMARY, _Earlier)
    except InputError:  # not ours, or of another format
        return False
    return (earlier.task.name, earlier.task.kind, earlier.verdict.measure) == (task.name, task.kind, measure) and len(
        labels & {row.label for row in earlier.rows}
    ) >= FEWEST_ROWS


def _queries_of(folder: Path) -> frozenset[str]:
    try:
        found = read_json(folder / DETAILED, _Queries).queries
    except InputError:
        return frozenset()
    return _graded({query: info.grades for query, info in found.items()})


def _graded(grades: Mapping[str, Mapping[str, int]]) -> frozenset[str]:
    """Graded queries; all of them in tasks without grades."""
    return frozenset(query for query, given in grades.items() if given) or frozenset(grades)


def set_over_looks(averaging: Averaging, table: Values, looks: QuestionLooks | None, *, bounded: bool) -> BestSet:
    """The confidence set of the best at this look."""
    if looks is None or not averaging.has_error:
        return averaging.best_set(table, bounded=bounded)
    linear, units = _linear(averaging, table), _of_units(averaging, looks)
    return best_set_at(linear, units, bounded=bounded, heaviest=averaging.heaviest, seed=averaging.seed)


def versus_over_looks(
    averaging: Averaging, table: Values, incumbent: int, looks: QuestionLooks | None, *, bounded: bool
) -> Versus:
    """Every row against the incumbent at this look."""
    if looks is None or not averaging.has_error:
        return averaging.versus(table, incumbent, bounded=bounded)
    linear, units = _linear(averaging, table), _of_units(averaging, looks)
    return versus_at(linear, incumbent, units, bounded=bounded, heaviest=averaging.heaviest, seed=averaging.seed)


def _of_units(averaging: Averaging, looks: QuestionLooks) -> Looks:
    """A cluster joins with the last of its queries: until then its mean is another one."""
    units = averaging.number_units(len(looks.looks.joined))
    latest = np.zeros(units.max() + 1, dtype=np.intp)
    np.maximum.at(latest, units, looks.looks.joined)
    return replace(looks.looks, joined=latest)


def _linear(averaging: Averaging, table: NDArray[np.float64]) -> Values:
    return np.stack([averaging.linear(column) for column in table.T], axis=1)
