"""`bakeoff report`, `bakeoff history` and `bakeoff serve`: pages from stored results."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from bakeoff_providers.errors import InputError

from bakeoff.cli import signals
from bakeoff.cli.shared_options import JsonOption, MetricsOption, ResultsArgument, check_file, deliver, say
from bakeoff.core.paths import is_draft

if TYPE_CHECKING:
    from bakeoff.report.history import Entry
    from bakeoff.results.check import Check


def report(
    result: ResultsArgument,
    out: Annotated[
        Path | None,
        typer.Option(help="Page to write. Default: the result's, or history.html."),
    ] = None,
    pictures: Annotated[bool, typer.Option(help="Write the charts as PNG and SVG beside the page.")] = True,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Make a result's page, exports and charts again, or finish a draft; for several results, one page over time."""
    from bakeoff.report import PAGE, render

    check_file(out, force=True)
    result = [_finish(path) if is_draft(path) else path for path in result]
    folders = _results(result)
    if len(folders) == 1 and folders[0] in result:  # a folder of results has a history, even with one result
        page = out or folders[0] / PAGE
        check_file(page, force=True)
        problems = render(folders[0], pictures=pictures, page=page)
    else:
        page = out or Path("history.html")
        check_file(page, force=True)
        problems = _history(folders, page, pictures=pictures)
    if page.is_file():
        say(f"Written to {page}")
    for problem in problems:
        say(problem, err=True)
    if not page.is_file():
        raise typer.Exit(1)
    if open_:
        import webbrowser

        if not webbrowser.open(page.resolve().as_uri()):
            say(f"no browser could be started; the page is {page.resolve()}", err=True)


def _finish(draft: Path) -> Path:
    """The result of a run that was interrupted: what it measured is all that is needed."""
    from bakeoff.report.console import Bars
    from bakeoff.results.save import save_draft

    return save_draft(draft, Bars())


def _results(given: list[Path]) -> list[Path]:
    from bakeoff.results.schema import find

    folders: list[Path] = []
    for folder in given:
        inside = find(folder)
        if not inside:
            raise InputError("holds no result", file=folder, remedy="name a folder under results/, or `latest`")
        folders += [path for path in inside if path not in folders]
    return folders


def _entries(folders: list[Path], page: Path) -> list[Entry]:
    import os
    from urllib.parse import quote

    from bakeoff.report import PAGE
    from bakeoff.report.history import Entry
    from bakeoff.results.current import current_summary

    return [
        Entry(
            name=path.name,
            link=quote(os.path.relpath(path / PAGE, page.parent)) if (path / PAGE).is_file() else "",
            summary=current_summary(path),
        )
        for path in folders
    ]


def _history(folders: list[Path], page: Path, *, pictures: bool) -> list[str]:
    from bakeoff.report.history import render

    return render(_entries(folders, page), page, pictures=pictures)


def history(
    results: ResultsArgument,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("history.html"),
    pictures: Annotated[bool, typer.Option(help="Write the chart as PNG and SVG beside the page.")] = False,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
) -> None:
    """Chart every contender over time, with the points where task, model or library changed."""
    check_file(out, force=True)
    folders = _results(results)
    deliver(
        "history", lambda: _history_check(folders, out, pictures=pictures), as_json=as_json, metrics_file=metrics_file
    )


def _history_check(folders: list[Path], out: Path, *, pictures: bool) -> Check:
    """Write the history page and return its findings."""
    from bakeoff.core.facts import fact, quote
    from bakeoff.report.history import all_changes, facts, ordered
    from bakeoff.results.check import Check, Gauge

    problems = _history(folders, out, pictures=pictures)
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
    from bakeoff.report.site import HOST, Site

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
