"""`bakeoff history`, `bakeoff serve` and `bakeoff tasks`: several results on a page, as a site, or in a table."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from bakeoff_providers.errors import InputError

from bakeoff.cli import signals
from bakeoff.cli.report import find_results
from bakeoff.cli.shared_options import (
    JsonOption,
    MetricsOption,
    ResultsArgument,
    check_file,
    check_folder,
    deliver,
    say,
)
from bakeoff.cli.streams import echo

if TYPE_CHECKING:
    from bakeoff.extensions.several_results.history import Entry
    from bakeoff.extensions.several_results.task_table import TaskTable
    from bakeoff.results.check import Check


def _entries(folders: list[Path], page: Path) -> list[Entry]:
    import os
    from urllib.parse import quote

    from bakeoff.extensions.several_results.history import Entry
    from bakeoff.report import PAGE
    from bakeoff.results.current import current_summary

    return [
        Entry(
            name=path.name,
            link=quote(os.path.relpath(path / PAGE, page.parent)) if (path / PAGE).is_file() else "",
            summary=current_summary(path),
        )
        for path in folders
    ]


def write_page(folders: list[Path], page: Path, *, pictures: bool) -> list[str]:
    """Writes the page of several results; a sentence for everything that could not be made."""
    from bakeoff.extensions.several_results.history import render

    return render(_entries(folders, page), page, pictures=pictures)


def history(
    results: ResultsArgument,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("history.html"),
    pictures: Annotated[bool, typer.Option(help="Also write the chart as PNG and SVG.")] = False,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
) -> None:
    """Chart every contender over time, with the points where task, model or library changed."""
    check_file(out, force=True)
    folders = find_results(results)
    deliver(
        "history", lambda: _history_check(folders, out, pictures=pictures), as_json=as_json, metrics_file=metrics_file
    )


def _history_check(folders: list[Path], out: Path, *, pictures: bool) -> Check:
    """Write the history page and return its findings."""
    from bakeoff.core.facts import fact, quote
    from bakeoff.extensions.several_results.history import all_changes, facts, ordered
    from bakeoff.results.check import Check, Gauge

    problems = write_page(folders, out, pictures=pictures)
    entries = ordered(_entries(folders, out))
    changed = all_changes(entries)
    latest = entries[-1].summary
    gauges = [
        Gauge("latest_score", "Mean of the deciding measure in the latest result",
              row.measures[latest.verdict.measure].mean, {"contender": row.label, "measure": latest.verdict.measure})
        for row in latest.ran
    ]  # fmt: skip
    figures = {"results": [entry.name for entry in entries], "changes": changed}
    known = [
        *facts(entries),
        *(fact("changed_between", when=change["when"], changes=change["changes"]) for change in changed),
        *map(quote, problems),
        fact("written", file=str(out)),
    ]
    return Check(command="history", worse=False, facts=known, figures=figures, gauges=gauges)


def serve(
    folder: Annotated[Path, typer.Argument(help="The folder that holds the results.")] = Path("results"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
) -> None:
    """Show the results folder as a site on 127.0.0.1."""
    from bakeoff.extensions.several_results.site import HOST, Site

    if not folder.is_dir():
        raise InputError("is not a folder", file=folder, remedy="name the folder that holds the results")
    try:
        site = Site(folder, port)
    except OSError as error:
        raise InputError(f"port {port} can't be used: {error.strerror}", remedy="choose another --port") from None
    with site:
        say(f"http://{HOST}:{site.server_address[1]}/ shows {folder}; Ctrl-C ends it")
        with contextlib.suppress(KeyboardInterrupt), signals.allow_interrupt():
            site.serve_forever()
        say("ended")


def tasks(
    results: ResultsArgument,
    measure: Annotated[str | None, typer.Option("-m", "--measure", help="Such as ndcg@10.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write tasks_summary.json and tasks.md into a folder here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what tasks_summary.json holds instead.")] = False,
) -> None:
    """Put the results of several tasks side by side: rows by task, macro means, wins, tests over tasks, transfer."""
    from bakeoff.extensions.several_results.task_table import as_json as table_json
    from bakeoff.extensions.several_results.task_table import combine
    from bakeoff.results.compare import read_results

    if out is not None:
        check_folder(out)
    table = combine(read_results(results), measure)
    folder = _save_table(table, results, out) if out is not None else None
    if as_json:
        echo(table_json(table))
    else:
        _print_table(table, folder)


def after_run(results: Sequence[Path], out: Path, *, quiet: bool) -> dict[str, Any]:
    """The table of a run over several tasks: saved, printed unless `quiet`, and as facts."""
    import msgspec

    from bakeoff.extensions.several_results.task_table import combine
    from bakeoff.results.compare import read_results

    table = combine(read_results(results))
    folder = _save_table(table, results, out)
    if not quiet:
        _print_table(table, folder)
    return {"folder": str(folder), "over_tasks": msgspec.to_builtins(table)}


def _save_table(table: TaskTable, results: Sequence[Path], out: Path) -> Path:
    from bakeoff.core.files import write_atomic, write_folder, write_json
    from bakeoff.extensions.several_results.task_table import markdown

    def fill(draft: Path) -> None:
        write_json(draft / "tasks_summary.json", table)
        write_atomic(draft / "tasks.md", markdown(table))

    return write_folder(out / f"{results[0].resolve().name}-and-{len(results) - 1}-more", fill)


def _print_table(table: TaskTable, folder: Path | None) -> None:
    from bakeoff.extensions.several_results.task_table import terminal
    from bakeoff.report.console import console

    console().print(terminal(table))
    if folder is not None:
        echo(f"\nWritten to {folder}/")
