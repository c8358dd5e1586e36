"""The part of `bakeoff validate` that examines a graded task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff_providers.errors import InputError

from bakeoff.cli.shared_options import OWN_LINEUP, grading_command, say, say_commands
from bakeoff.core.printable import join_names, pluralise
from bakeoff.extensions.testsets.commands.pairs_to_grade import next_to_grade
from bakeoff.report.words import Words, some_of

if TYPE_CHECKING:
    from bakeoff.core.task import Task
    from bakeoff.extensions.testsets.health import Grading, Health
    from bakeoff.extensions.testsets.task_folder import TaskFolder
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.tasks.kinds.base import TaskKind


def examine(lineup: Lineup, kind: TaskKind, task: Task, path: Path, *, has_rows: bool) -> None:
    """The health of a graded task. Without grades: findings on its texts, and how to grade it."""
    from bakeoff.core.paths import task_description
    from bakeoff.extensions.testsets.health import health, text_health
    from bakeoff.extensions.testsets.task_folder import TaskFolder
    from bakeoff.report.console import Bars
    from bakeoff.report.words import words
    from bakeoff.tasks.kinds.graded import Graded

    described = task_description(lineup.task, path.parent) if has_rows and isinstance(lineup.task, str) else path
    folder = TaskFolder.of(described, kind, task) if isinstance(kind, Graded) else None
    if folder and isinstance(lineup.task, dict) and folder.truth_path.exists():
        say(f"grades of {folder.truth_path} are read, as by every line-up beside it that names no other ground_truth")
    stands = folder.standing() if folder else None
    standing = words(stands) if stands else ""
    if any(task.judgments.values()):
        _print_health(health(task, lineup, Bars(), _grading(folder, path if has_rows else None)))
        if standing:
            say(standing)
        return
    for finding in text_health(task).findings():
        say(f"warning: {words(finding)}")
    say("no grades yet" + (f": {standing}" if standing else ""))
    if folder and not standing:
        say_commands(next_to_grade(folder.name, path if has_rows else None))


def _grading(folder: TaskFolder | None, lineup: Path | None) -> Grading:
    """The pool, and the command that grades the open pairs: those of the pool, or those that a line-up finds."""
    from bakeoff.extensions.testsets.health import Grading
    from bakeoff.tasks.looks import POOL

    if folder is None:
        return Grading()
    if (folder.annotations / POOL).exists():
        try:
            return Grading(folder.pool(), _page_or_table(f"bakeoff grade {folder.name}"))
        except InputError as error:  # a pool that predates a change of the task must not block a run
            say(f"warning: {error}")
    return Grading(None, _page_or_table(grading_command(folder.name, lineup or OWN_LINEUP)))


def _page_or_table(command: str) -> str:
    """The commands that grade the rest: on the page, or in a table."""
    table = command.replace("bakeoff grade", "bakeoff grade export", 1)
    return f"{command} --ungraded, or as a table: {table} --ungraded --out rest.csv"


def _print_health(health: Health) -> None:
    from bakeoff.extensions.testsets.health import FREE_NAMES
    from bakeoff.report.console import console
    from bakeoff.report.grid import Figures, Grid
    from bakeoff.report.words import words

    table = Grid(["measure", Figures("oracle"), Figures("bm25"), Figures("random"), "target"])
    for ceiling in health.ceilings:
        target = (
            ""
            if ceiling.target is None
            else f"{ceiling.target:.2f}" + (" out of reach" if ceiling.out_of_reach else "")
        )
        table.add_row(ceiling.measure, f"{ceiling.oracle:.3f}", f"{ceiling.bm25:.3f}", f"{ceiling.random:.3f}", target)
    console().print(table)
    pool = f"{1 - health.open_pairs / health.pooled:.1%} of the pool, " if health.pooled else ""
    say(
        f"judged: {pool}{health.judged_share:.1%} of all pairs, {health.judged_top:.1%} of the first {health.depth} "
        f"places of {FREE_NAMES}"
    )
    if health.lexical is not None:
        shared = (
            "" if health.shared_words is None else f"; {health.shared_words:.0%} of a query's words are in its answers"
        )
        say(f"how lexical: BM25 has {health.lexical:.0%} of the oracle's {health.primary}{shared}")
    if health.unnoticed_below is not None:
        gaps = f"gaps below about {health.unnoticed_below:g} {health.primary}"
        say(
            f"with {pluralise(health.queries, 'query')}, {gaps} will usually go unnoticed ({health.unnoticed_between}; "
            "a run reports it for its own rows)"
        )
    for finding in health.findings():
        say(f"warning: {words(finding)}")
    if not health.findings():
        say("nothing to fix")


def _filter_matches_nothing(count: int, queries: Sequence[str]) -> str:
    return f"no document passes the filter (where) of {some_of(queries, count)}"


def _mostly_relevant(count: int, queries: Sequence[str], share: float) -> str:
    some = some_of(queries, count)
    return f"more than {share:.0%} of the corpus is relevant for {some}; even a random order does well there"


def _more_relevant_than_depth(count: int, queries: Sequence[str], depth: int) -> str:
    some = some_of(queries, count)
    return f"more than {depth} documents are relevant for {some}; recall@{depth} can't reach 1 there"


def _pool_ungraded(open_pairs: int, pooled: int, command: str) -> str:
    have = "has no grade and counts" if open_pairs == 1 else "have no grade and count"
    return f"{open_pairs} of the {pluralise(pooled, 'pair')} of the pool {have} as not relevant: {command}"


def _top_ungraded(share: float, labels: Sequence[str], depth: int, command: str) -> str:
    return (
        f"{share:.0%} of the first {depth} places of {join_names(labels)} has no grade and counts as not relevant: "
        f"{command}"
    )


def _unsettled_grades(grades: int, annotators: Sequence[str], task: str) -> str:
    are = "is" if grades == 1 else "are"
    return f"{pluralise(grades, 'grade')} by {', '.join(annotators)} {are} not used yet: bakeoff adjudicate {task}"


WORDS: Words = {
    "filter_matches_nothing": _filter_matches_nothing,
    "near_duplicates": "{first} and {second} are {share:.0%} alike: drop one of them",
    "mostly_relevant": _mostly_relevant,
    "more_relevant_than_depth": _more_relevant_than_depth,
    "target_out_of_reach": "the target {measure} ≥ {target} can't be met; a perfect ranking has {oracle:.3f}",
    "pool_ungraded": _pool_ungraded,
    "top_ungraded": _top_ungraded,
    "lexical_task": (
        "BM25 has {share:.0%} of the oracle's {measure}; words alone answer these queries, so embeddings can't show "
        "their worth"
    ),
    "unsettled_grades": _unsettled_grades,
    "one_annotator": "all grades are from one annotator, {annotator}",
}
