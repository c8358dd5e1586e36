"""Grading by a plan of looks: which queries are next, and when to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff_providers.errors import InputError

from bakeoff.cli.shared_options import say, warn
from bakeoff.extensions.testsets.commands.pairs_to_grade import pairs_to_grade
from bakeoff.extensions.testsets.task_folder import TaskFolder

if TYPE_CHECKING:
    from bakeoff.extensions.testsets.annotations import QueryDocument
    from bakeoff.tasks.looks import LookState

GradePairs = Callable[["TaskFolder", "list[QueryDocument]", Callable[[], object]], None]


def look_queries(folder: TaskFolder) -> list[str] | None:
    """Print and return the queries of the next planned look; None without a plan, or after its end."""
    state = _state(folder)
    if state is None or state.is_last:
        return None
    look = state.number + 1
    of, left = len(state.plan.queries), len(state.missing(look))
    say(f"Look {look} of {of} is at {state.plan.queries[look - 1]} queries; {left} of them are not graded yet.")
    return state.asked(look)


def grade_until_decided(
    source: str, lineup: Path, depth: int, all_below: int, offline: bool, grade_pairs: GradePairs
) -> None:
    """Grade look by look, in the drawn order, until the plan decides or grades of a look are missing."""
    while True:
        folder = TaskFolder.open(source)
        state = _state(folder)
        if state is None:
            raise InputError(
                "the task has no plan of looks", file=folder.path,
                remedy=f"bakeoff plan-queries RESULT --looks 5 --difference 0.05 --task {source}",
            )  # fmt: skip
        if state.number and _is_over(folder, lineup, offline):
            return
        wanted = set(state.next_queries())
        look = state.number + 1
        say(f"Look {look} of {len(state.plan.queries)} takes {len(wanted)} more queries.")
        pairs, keep = pairs_to_grade(folder, lineup, depth, all_below, offline, ungraded=False)
        grade_pairs(folder, [pair for pair in pairs if pair[0] in wanted], keep)
        after = _state(TaskFolder.open(source))
        if after is None or after.number < look:
            left = len(after.missing(look)) if after else 0
            say(f"{left} queries of look {look} are not fully graded yet; run the same command again to continue.")
            return


def _state(folder: TaskFolder) -> LookState | None:
    from bakeoff.tasks.looks import read_state

    return read_state(folder.kind.base, folder.task)


def _is_over(folder: TaskFolder, lineup: Path, offline: bool) -> bool:
    """Run the line-up on the queries of the last look and print the verdict; True if the plan ends there."""
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars
    from bakeoff.report.verdict_words import verdict_sentences
    from bakeoff.results.summary import summarise
    from bakeoff.running.runner import Settings, run, vectors_folder

    task = folder.kind.at_look(folder.task)
    settings = Settings(cache=vectors_folder(), offline=offline, progress=Bars(), notice=warn, recorded=False)
    chosen = replace(Lineup.read(lineup), task=task, tasks=(), overrides={}, rounds=1)
    summary = summarise(run(chosen, settings))
    for sentence in verdict_sentences(summary):
        say(sentence)
    look = summary.verdict.look
    return summary.verdict.decided or (look is not None and look.number == len(look.queries))
