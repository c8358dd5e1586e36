"""Planned looks at a task that is being graded: `looks.json` in its folder, written before the first look.

The order of queries is drawn at random. A look covers the first queries of that order, once all of them are graded.
Further grades wait for the next look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import msgspec
from bakeoff_providers.errors import InputError

from bakeoff.core.files import read_json, write_json
from bakeoff.core.hashing import order_key
from bakeoff.core.task import Judgments, Task
from bakeoff.statistics.constants import ALPHA, SEED

FILE = "looks.json"
POOL = "pool.json"


class Pool(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`annotations/pool.json`: the pairs to grade, in an order that does not show who ranked them."""

    metadata: dict[str, Any] = {}
    pairs: dict[str, list[str]]


class LookPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`looks.json`: the number of queries at each look, the alpha spending, and the order of queries."""

    queries: list[int]
    order: list[str]
    spending: Literal["pocock"] = "pocock"
    alpha: float = ALPHA
    measure: str = ""
    difference: float | None = None  # the plan's difference


@dataclass(frozen=True, slots=True)
class LookState:
    """The progress of a plan."""

    plan: LookPlan
    graded: frozenset[str]

    @property
    def number(self) -> int:
        """The last look whose queries are all graded; 0 before the first."""
        return sum(not self.missing(look) for look in range(1, len(self.plan.queries) + 1))

    @property
    def is_last(self) -> bool:
        """Whether this is the last look."""
        return self.number == len(self.plan.queries)

    def asked(self, look: int) -> list[str]:
        """The queries of a look, in the drawn order."""
        return self.plan.order[: self.plan.queries[look - 1]]

    def missing(self, look: int) -> list[str]:
        """The ungraded queries of a look."""
        return [query for query in self.asked(look) if query not in self.graded]

    def next_queries(self) -> list[str]:
        """The queries to grade for the next look."""
        return [] if self.is_last else self.missing(self.number + 1)


def read_state(base: Path, task: Task) -> LookState | None:
    """A task's plan and its progress; None without a plan."""
    path = base / FILE
    if not path.is_file():
        return None
    plan, known = read_json(path, LookPlan), {query.id for query in task.queries}
    again = "remove the file and plan again: bakeoff plan-queries --looks"
    if unknown := [query for query in plan.order if query not in known]:
        raise InputError(f"the task has no query {unknown[0]!r}", file=path, place="$.order", remedy=again)
    if len(set(plan.order)) < len(plan.order):
        raise InputError("names a query twice", file=path, place="$.order", remedy=again)
    rising = all(one < other for one, other in pairwise([0, *plan.queries]))
    if not plan.queries or not rising or plan.queries[-1] > len(plan.order):
        raise InputError("the numbers of queries must rise up to the length of the order", file=path, remedy=again)
    if plan.alpha != ALPHA:
        raise InputError(f"alpha is {plan.alpha:g}", file=path, place="$.alpha", remedy=f"only {ALPHA:g} is known")
    return LookState(plan, frozenset(_graded(base, task.judgments)))


def _graded(base: Path, judgments: Judgments) -> list[str]:
    """Queries whose whole pool is graded; without a pool, queries with any grade."""
    path = base / "annotations" / POOL
    pool = read_json(path, Pool).pairs if path.is_file() else {}
    return [query for query, grades in judgments.items() if grades and set(pool.get(query, ())) <= grades.keys()]


def write_plan(base: Path, queries: Sequence[str], numbers: Sequence[int], measure: str, difference: float) -> Path:
    """Draws the order and writes the plan. Refuses a second plan, or one that needs more queries than the task has."""
    path = base / FILE
    if path.exists():
        raise InputError("the task already has a plan", file=path, remedy="remove it only before the first look")
    if numbers[-1] > len(queries):
        raise InputError(
            f"the plan needs {numbers[-1]:,} queries, and the task has {len(queries):,}",
            file=base,
            remedy="add queries (bakeoff queries), or plan for a larger --difference",
        )
    order = sorted(queries, key=lambda query: order_key(SEED, "looks", query))
    write_json(path, LookPlan(queries=list(numbers), order=order, measure=measure, difference=difference))
    return path


def at_look(task: Task, state: LookState, base: Path) -> Task:
    """The task with the queries of the last fully graded look."""
    if not state.number:
        first, graded = state.plan.queries[0], state.plan.queries[0] - len(state.missing(1))
        raise InputError(
            f"look 1 of {len(state.plan.queries)} is at {first} queries, of which {graded} are graded",
            file=base / FILE,
            remedy="grade them: bakeoff grade TASK --until-decided",
        )
    by_id = {query.id: query for query in task.queries}
    asked = state.asked(state.number)
    return msgspec.structs.replace(
        task,
        queries=[by_id[query] for query in asked],
        judgments={query: task.judgments[query] for query in asked},
        planned_looks=tuple(state.plan.queries),
    )
