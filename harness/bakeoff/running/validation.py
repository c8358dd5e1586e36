"""A line-up checked without running it: what every row would meet before it is asked for anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bakeoff_providers.errors import InputError
from bakeoff_providers.stopping import ends_run

from bakeoff.core.task import Task
from bakeoff.evaluation.measures import Measure
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.scoring import check_graded
from bakeoff.running.settings import Settings
from bakeoff.systems.base import System
from bakeoff.systems.embedding import EmbeddingRow
from bakeoff.systems.failures import reason_of
from bakeoff.tasks.kinds.base import TaskKind


@dataclass(frozen=True, slots=True)
class Checked:
    """One row: `wrong` is what the line-up must change, `missing` what this machine lacks; neither means ready.

    `warnings` say what would weaken it: texts that its model reads in part, a prompt that it lacks.
    """

    label: str
    wrong: str = ""
    missing: str = ""
    warnings: tuple[str, ...] = ()


def check_task(task: Task, kind: TaskKind) -> None:
    """Targets that are measures, and grades that some document reaches; a task without grades is still to be graded."""
    for target in task.targets:
        try:
            Measure.parse(target)
        except InputError as error:
            raise InputError(error.problem, place="targets", remedy=error.remedy) from None
    if kind.free_health_check and any(task.judgments.values()):
        check_graded(task)


def check_rows(lineup: Lineup, task: Task) -> Iterator[Checked]:
    """Options, dimensions, index strings, files and functions of every row; own servers are asked whether they live."""
    embeddings = Embeddings(task, 1, Settings(), lineup.folder)
    try:
        for contender in lineup.contenders:
            yield _checked(contender, embeddings)
    finally:
        embeddings.close()


def _checked(contender: System, embeddings: Embeddings) -> Checked:
    if contender.unset:
        return Checked(contender.label, missing=contender.unset)
    try:
        contender.check(embeddings)
        contender.try_out(embeddings)
        missing, warnings = contender.lacks() or "", list[str]()
        if isinstance(contender, EmbeddingRow) and not missing:
            warnings = embeddings.warnings_before(contender)
    except InputError as error:
        return Checked(contender.label, wrong=reason_of(error))
    except BaseException as error:
        if ends_run(error):
            raise
        return Checked(contender.label, missing=reason_of(error))
    return Checked(contender.label, missing=missing, warnings=tuple(warnings))
