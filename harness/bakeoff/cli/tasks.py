"""`bakeoff tasks`: results of several tasks side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli.shared_options import ResultsArgument, check_folder
from bakeoff.cli.streams import echo

if TYPE_CHECKING:
    from bakeoff.results.task_table import TaskTable

SUMMARY = "tasks_summary.json"


def tasks(
    results: ResultsArgument,
    measure: Annotated[str | None, typer.Option("-m", "--measure", help="Such as ndcg@10.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write tasks_summary.json and tasks.md into a folder here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what tasks_summary.json holds instead.")] = False,
) -> None:
    """Put the results of several tasks side by side: rows by task, macro means, wins, tests over tasks, transfer."""
    from bakeoff.report import task_table as report
    from bakeoff.report.console import console
    from bakeoff.results.compare import read_results
    from bakeoff.results.task_table import combine

    folder = None
    if out is None:
        table = combine(read_results(results), measure)
    else:
        check_folder(out)
        table, folder = save_side_by_side(results, out, measure)
    if as_json:
        import msgspec

        echo(msgspec.json.format(msgspec.json.encode(table)).decode())
        return
    console().print(report.terminal(table))
    if folder is not None:
        echo(f"\nWritten to {folder}/")


def save_side_by_side(results: Sequence[Path], out: Path, measure: str | None = None) -> tuple[TaskTable, Path]:
    """The table over all tasks, and the new folder under `out` that holds it."""
    from bakeoff.core.files import write_atomic, write_folder, write_json
    from bakeoff.report import task_table as report
    from bakeoff.results.compare import read_results
    from bakeoff.results.task_table import combine

    table = combine(read_results(results), measure)

    def fill(draft: Path) -> None:
        write_json(draft / SUMMARY, table)
        write_atomic(draft / "tasks.md", report.markdown(table))

    return table, write_folder(out / f"{results[0].resolve().name}-and-{len(results) - 1}-more", fill)
