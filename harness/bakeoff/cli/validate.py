"""`bakeoff validate`: will every row run, and which differences can the task show?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from bakeoff_providers.errors import InputError

from bakeoff.cli.shared_options import lineup_path, read_lineup, say, warn
from bakeoff.core.extensions import collect_entries, load_place

if TYPE_CHECKING:
    from bakeoff.core.task import Task
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.running.validation import Checked
    from bakeoff.tasks.kinds.base import TaskKind


def validate(
    target: Annotated[
        str | None,
        typer.Argument(help="Line-up, or task folder, task.toml or name."),
    ] = None,
    health: Annotated[
        bool,
        typer.Option(help="Run three free baselines to see what the task can show."),
    ] = True,
) -> None:
    """Check a line-up or a task before spending anything on it."""
    from bakeoff.report.brief_notes import needs_sentence
    from bakeoff.report.words import failure_words, words

    path, lineup = _lineup(target)
    tasks = [_check(one, place, path) for place, one in enumerate(lineup.per_task())]
    rows = [row for checked in tasks for row in checked.rows]
    wrong = [row for row in rows if row.wrong]
    lacking = [row.failure for row in rows if row.failure and not row.wrong]
    counts = f", {len(rows) - len(lacking)} of {len(rows)} rows would run" if rows else ""
    needs = f" ({needs_sentence(lacking)})" if lacking else ""
    say(f"{path}: {f'{len(wrong)} of {len(rows)} rows would not run' if wrong else f'valid{counts}{needs}'}")
    for checked in tasks:
        _print_task(checked.task, checked.kind.about)
        if rows and checked is tasks[0]:
            say(f"measures: {', '.join(map(str, lineup.measures))}; {lineup.primary} decides")
        for row in checked.rows:
            state = failure_words(row.failure) if row.failure else "ready"
            say(f"  {row.label}: {'wrong: ' if row.wrong else ''}{state}")
        warned: dict[str, list[str]] = {}
        for row in checked.rows:
            for warning in row.warnings:
                warned.setdefault(words(warning), []).append(row.label)
        for text, labels in warned.items():
            say(f"warning: {', '.join(labels)}: {text}")
        if health and not wrong and checked.kind.free_health_check:
            for place in collect_entries("TASK_HEALTH").values():
                load_place(place)(checked.lineup, checked.kind, checked.task, path, has_rows=bool(checked.rows))
    if wrong:
        say("Next: correct the rows that are wrong, then validate again")
        raise typer.Exit(2)
    if len(lacking) < len(rows) and all(any(checked.task.judgments.values()) for checked in tasks):
        say(f"Next: bakeoff run {path}")


class _Checked(NamedTuple):
    """One task of a line-up, with the findings for each row."""

    lineup: Lineup
    kind: TaskKind
    task: Task
    rows: list[Checked]


def _check(lineup: Lineup, place: int, path: Path) -> _Checked:
    """Checks one task of a line-up and its rows. Errors in a task without a file point to the line-up."""
    from bakeoff.running.scoring import check_dates
    from bakeoff.running.validation import check_rows, check_task
    from bakeoff.tasks.kinds import load_kind

    try:
        kind = load_kind(lineup.task, lineup.folder, lineup.overrides)
        task = kind.task()
        check_task(task, kind, warn)
        check_dates(task, lineup.measures, lineup.file)
        kind.check_contenders(task, lineup.contenders, lineup.folder)
    except InputError as error:
        if error.file is not None or not place:
            raise
        where = f"tasks[{place}]" + (f", {error.place}" if error.place else "")
        raise InputError(error.problem, file=path, place=where, remedy=error.remedy) from None
    return _Checked(lineup, kind, task, list(check_rows(lineup, task)))


def _lineup(target: str | None) -> tuple[Path, Lineup]:
    """The named line-up; for a task, one without contenders and with the default measures."""
    from bakeoff.core.files import read_toml
    from bakeoff.core.paths import built_in_lineups, default_lineup, task_description
    from bakeoff.evaluation.measures import Measure, primary_measure
    from bakeoff.lineup.lineup import DEFAULT_MEASURES, Lineup

    path = lineup_path(None) if target is None else Path(target)
    named = built_in_lineups().get(target or "", default_lineup())
    if named != default_lineup():  # as in `run`, a line-up wins over a task of the same name
        path = lineup_path(path)
        return path, read_lineup(path)
    if target is not None and target.endswith(".toml"):
        path = lineup_path(path)
    if target is None or (target.endswith(".toml") and not {"format", "kind"} & read_toml(path, dict[str, Any]).keys()):
        return path, read_lineup(path)
    path = task_description(str(target), Path())
    measures = tuple(map(Measure.parse, DEFAULT_MEASURES))
    return path, Lineup(
        name=path.parent.name,
        task=str(path.resolve()),
        contenders=(),
        measures=measures,
        primary=primary_measure(measures),
        depth=None,
        rounds=1,
        seed=42,
        folder=Path(),
    )


def _print_task(task: Task, about: str) -> None:
    from bakeoff.core.printable import pluralise
    from bakeoff.report.notes import task_called

    judged = sum(len(grades) for grades in task.judgments.values())
    say(
        f"{task_called(task.name)}: {pluralise(len(task.documents), 'document')}, "
        f"{pluralise(len(task.queries), 'query')}, {pluralise(judged, 'judgment')}, fingerprint {task.fingerprint()}"
    )
    if about:
        say(about)
