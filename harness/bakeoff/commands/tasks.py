"""`bakeoff tasks`: results of several tasks side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.commands.options import ResultsArgument, check_folder


def tasks(
    results: ResultsArgument,
    measure: Annotated[str | None, typer.Option("-m", "--measure", help="Such as ndcg@10.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write tasks_summary.json and tasks.md into a folder here.")] = None,
) -> None:
    """Put the results of several tasks side by side: rows by task, macro means, wins, tests over tasks, transfer."""
    from bakeoff.core.files import write_atomic, write_folder, write_json
    from bakeoff.report import tasks as report
    from bakeoff.report.console import console
    from bakeoff.results.compare import read_results
    from bakeoff.results.tasks import combine

    if out is not None:
        check_folder(out)
    table = combine(read_results(results), measure)
    console().print(report.terminal(table))
    if out is not None:

        def fill(draft: Path) -> None:
            write_json(draft / "tasks_summary.json", table)
            write_atomic(draft / "tasks.md", report.markdown(table))

        folder = write_folder(out / f"{results[0].resolve().name}-and-{len(results) - 1}-more", fill)
        typer.echo(f"\nWritten to {folder}/")
