"""Several tasks in one table: for the terminal, and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bakeoff.core.printable import inert, section_lines
from bakeoff.evaluation.measures import Measure
from bakeoff.extensions.several_results.nested import NestedDifference
from bakeoff.extensions.several_results.task_table import TaskTable
from bakeoff.report.pairs import p_text
from bakeoff.statistics.constants import ALPHA

if TYPE_CHECKING:
    from rich.console import RenderableType

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
