"""Results of several tasks side by side: rows by task, macro means, wins, tests over tasks, and transfer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.arrays import Values
from bakeoff.core.printable import inert, section_lines
from bakeoff.evaluation.measures import Measure
from bakeoff.extensions.several_results.nested import NestedDifference, estimate_nested
from bakeoff.report.pairs import p_text
from bakeoff.results.result import Result
from bakeoff.statistics.averaging import Averaging
from bakeoff.statistics.columns import differences_of
from bakeoff.statistics.constants import ALPHA, NOISE
from bakeoff.statistics.tests import holm_of_distinct, hypothesis_of

if TYPE_CHECKING:
    from rich.console import RenderableType


FORMAT = 2
ROLES = ("domain", "general")


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """One contender over all tasks; tasks on which several are best count as a win for each."""

    label: str
    by_task: dict[str, float]
    macro: float
    wins: int


class TaskPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two contenders over all tasks; Holm's correction is over all distinct pairs."""

    a: str
    b: str
    over_tasks: NestedDifference
    p_holm: float


class Transfer(msgspec.Struct, frozen=True, kw_only=True):
    """What an adapted contender gained on the tasks of one role, against its base."""

    label: str
    base: str
    role: str
    tasks: list[str]
    over_tasks: NestedDifference
    p_holm: float


class TaskTable(msgspec.Struct, frozen=True, kw_only=True):
    """`tasks_summary.json`."""

    format: int = FORMAT
    measure: str
    tasks: list[str]
    roles: dict[str, str]
    queries: dict[str, int]
    rows: list[TaskRow]
    pairs: list[TaskPair]
    transfer: list[Transfer]
    left_out: list[str]


def combine(results: Sequence[Result], measure: Measure | str | None = None) -> TaskTable:
    """Contenders that ran on every task, by one measure; roles and bases are what the line-ups say."""
    if len(results) < 2:
        raise InputError("several tasks need several results", remedy="name at least two")
    by, tasks = results[0].measure(measure), [result.summary.task.name for result in results]
    if twice := [name for name in tasks if tasks.count(name) > 1]:
        raise InputError(f"two results are of task {twice[0]!r}", remedy="bakeoff compare compares runs of one task")
    labels = [label for label in results[0].labels if all(label in result.labels for result in results)]
    if not labels:
        raise InputError("no contender ran on every task", remedy="give contenders the same labels")
    named = dict(zip(tasks, results, strict=True))
    scores = {task: {label: result.values(label, by) for label in labels} for task, result in named.items()}
    averagings = {task: result.averaging() for task, result in named.items()}
    figures = {
        task: {label: by.figure(averagings[task].mean(values)) for label, values in rows.items()}
        for task, rows in scores.items()
    }
    roles = {task: str(result.summary.lineup.get("role", "")) for task, result in named.items()}
    bases = {label: base for result in results for label, base in result.summary.lineup.get("bases", {}).items()}
    every = {label for result in results for label in result.labels}
    return TaskTable(
        measure=str(by),
        tasks=tasks,
        roles={task: role for task, role in roles.items() if role},
        queries={task: len(next(iter(scores[task].values()))) for task in tasks},
        rows=sorted(_rows(labels, figures), key=lambda row: -row.macro),
        pairs=_pairs(labels, scores, averagings, bounded=by.bounded),
        transfer=_transfer(
            scores,
            averagings,
            roles,
            {label: base for label, base in bases.items() if label in labels},
            bounded=by.bounded,
        ),
        left_out=sorted(every - set(labels)),
    )


def _rows(labels: Sequence[str], figures: Mapping[str, Mapping[str, float]]) -> list[TaskRow]:
    best = {task: max(row.values()) for task, row in figures.items()}
    return [
        TaskRow(
            label=label,
            by_task={task: row[label] for task, row in figures.items()},
            macro=float(np.mean([row[label] for row in figures.values()])),
            wins=sum(row[label] >= best[task] - NOISE for task, row in figures.items()),
        )
        for label in labels
    ]


def _pairs(
    labels: Sequence[str],
    scores: Mapping[str, Mapping[str, Values]],
    averagings: Mapping[str, Averaging],
    *,
    bounded: bool,
) -> list[TaskPair]:
    chosen = list(combinations(labels, 2))
    differences = [_differences(a, b, scores, averagings) for a, b in chosen]
    over = [estimate_nested(by_task, bounded=bounded) for by_task in differences]
    adjusted = holm_of_distinct([one.p for one in over], [hypothesis_of(np.concatenate(d)) for d in differences])
    return [
        TaskPair(a=a, b=b, over_tasks=one, p_holm=float(p))
        for (a, b), one, p in zip(chosen, over, adjusted, strict=True)
    ]


def _differences(
    a: str, b: str, scores: Mapping[str, Mapping[str, Values]], averagings: Mapping[str, Averaging]
) -> list[Values]:
    """Per task, values with the mean and error of the difference under that task's averaging."""
    return [averagings[task].linear(differences_of(rows[a], rows[b])) for task, rows in scores.items()]


def _transfer(
    scores: Mapping[str, Mapping[str, Values]],
    averagings: Mapping[str, Averaging],
    roles: Mapping[str, str],
    bases: Mapping[str, str],
    *,
    bounded: bool,
) -> list[Transfer]:
    chosen: list[tuple[str, str, str, list[str], NestedDifference]] = []
    asked: list[tuple[str, bytes] | None] = []
    for label, base in bases.items():
        for role in ROLES:
            tasks = [task for task in scores if roles[task] == role]
            if tasks and base in scores[tasks[0]]:
                differences = _differences(label, base, {task: scores[task] for task in tasks}, averagings)
                chosen.append((label, base, role, tasks, estimate_nested(differences, bounded=bounded)))
                hypothesis = hypothesis_of(np.concatenate(differences))
                asked.append(None if hypothesis is None else (role, hypothesis))
    adjusted = holm_of_distinct([one[-1].p for one in chosen], asked)
    return [
        Transfer(label=label, base=base, role=role, tasks=tasks, over_tasks=over, p_holm=float(p))
        for (label, base, role, tasks, over), p in zip(chosen, adjusted, strict=True)
    ]


ALIKE = (
    f"{0:+.4f} with an interval: no query differs; the interval covers what other queries might show, and "
    "is wide if queries are few."
)

TASKS = "tasks"
Block = tuple[str, list[str], list[list[str]]]  # title, heads, rows


def blocks(table: TaskTable) -> list[Block]:
    """Tables of rows by task, pairs over tasks, and transfer."""
    label = Measure.parse(table.measure).label
    heads = [f"{task} ({table.roles[task]})" if task in table.roles else task for task in table.tasks]
    made: list[Block] = [
        (
            f"{label} by task",
            ["contender", *heads, "macro mean", "wins"],
            [
                [row.label, *(f"{row.by_task[task]:.4f}" for task in table.tasks), f"{row.macro:.4f}", str(row.wins)]
                for row in table.rows
            ],
        )
    ]
    figures = ["macro difference [95%]", "p (Holm)", "p over tasks"]
    if table.pairs:
        rows = [[f"{pair.a} − {pair.b}", *_figures(pair.over_tasks, pair.p_holm)] for pair in table.pairs]
        made.append((f"{label} over tasks", ["contender", *figures], rows))
    if table.transfer:
        rows = [
            [f"{one.label} − {one.base}", f"{one.role} ({len(one.tasks)})", *_figures(one.over_tasks, one.p_holm)]
            for one in table.transfer
        ]
        made.append(("Transfer: gained or lost against the base", ["contender", TASKS, *figures], rows))
    return made


def as_json(table: TaskTable) -> str:
    """Every fact. `text` may change."""
    content = {**msgspec.to_builtins(table), "text": sentences(table)}
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode()


def sentences(table: TaskTable) -> list[str]:
    """What must be read with the tables, and what an adapted contender came to."""
    queries = ", ".join(f"{task} {count}" for task, count in table.queries.items())
    lines = [
        f"Every task counts alike, whatever its number of queries ({queries}). p (Holm): for these tasks, by queries "
        "within tasks; p over tasks: for tasks like these, with the task as the unit."
    ]
    least = 2.0 ** (1 - len(table.tasks))
    if least > ALPHA:
        lines.append(
            f"{len(table.tasks)} tasks can't show anything about others: p over tasks is at least {least:.2g}."
        )
    for one in table.transfer:
        d, sure = one.over_tasks.difference, one.p_holm <= ALPHA
        word = ("gained" if d > 0 else "lost") if sure else "is not shown to have gained or lost anything"
        much = f" {abs(d):.3f}" if sure else ""
        lines.append(f"{one.label} {word}{much} on {one.role} tasks against {one.base} (p (Holm) = {one.p_holm:.2g}).")
    if any(pair.over_tasks.low and not pair.over_tasks.difference for pair in table.pairs):
        lines.append(ALIKE)
    if table.left_out:
        lines.append(f"Left out, since they did not run on every task: {', '.join(table.left_out)}.")
    return lines


def _figures(over: NestedDifference, p_holm: float) -> list[str]:
    interval = "" if over.low is None or over.high is None else f" [{over.low:+.4f}, {over.high:+.4f}]"
    return [f"{over.difference:+.4f}{interval}", p_text(p_holm), p_text(over.p_tasks)]


def terminal(table: TaskTable) -> RenderableType:
    """All of it, one table below the other."""
    from rich.console import Group
    from rich.text import Text

    from bakeoff.report.grid import Figures, Grid, Prose

    parts: list[RenderableType] = []
    for title, heads, rows in blocks(table):
        shown = Grid([heads[0], *(Figures(head) for head in heads[1:])])
        shown.keys = 2 if heads[1] == TASKS else 1  # a contender's rows differ in their tasks
        for row in rows:
            shown.add_row(*map(Text, row))
        parts += [Text(title, style="bold"), shown]
    return Group(*parts, *map(Prose, sentences(table)))


def markdown(table: TaskTable) -> str:
    """The same for a file."""
    lines: list[str] = []
    for title, heads, rows in blocks(table):
        lines += section_lines(title, heads, rows, [])
    return "\n".join([*lines, *(f"- {inert(sentence)}" for sentence in sentences(table))]) + "\n"
