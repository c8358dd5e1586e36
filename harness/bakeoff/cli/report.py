"""`bakeoff report`: pages from stored results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from bakeoff_providers.errors import InputError

from bakeoff.cli.shared_options import ResultsArgument, check_file, say
from bakeoff.core.extensions import collect_entries, load_place
from bakeoff.core.paths import is_draft


def report(
    result: ResultsArgument,
    out: Annotated[
        Path | None,
        typer.Option(help="Page to write. Default: the result's, or history.html."),
    ] = None,
    pictures: Annotated[bool, typer.Option(help="Also write the charts as PNG and SVG.")] = True,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Rebuild a result's page, exports and charts, or finish a draft; several results get one history page."""
    from bakeoff.report import PAGE, render

    check_file(out, force=True)
    result = [_finish(path) if is_draft(path) else path for path in result]
    folders = find_results(result)
    if len(folders) == 1 and folders[0] in result:  # a folder of results has a history, even with one result
        page = out or folders[0] / PAGE
        check_file(page, force=True)
        problems = render(folders[0], pictures=pictures, page=page)
    else:
        page = out or Path("history.html")
        check_file(page, force=True)
        problems = _render_several(folders, page, pictures=pictures)
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
    """Makes the result of an interrupted run from what it measured."""
    from bakeoff.report.console import Bars
    from bakeoff.results.save import save_draft

    return save_draft(draft, Bars())


def _render_several(folders: list[Path], page: Path, *, pictures: bool) -> list[str]:
    places = collect_entries("SEVERAL_RESULTS").values()
    if not places:
        raise InputError(f"{len(folders)} results can't share a page here", remedy="name one result")
    return [problem for place in places for problem in load_place(place)(folders, page, pictures=pictures)]


def find_results(given: list[Path]) -> list[Path]:
    """Every result in the given folders, each once."""
    from bakeoff.results.schema import find

    folders: list[Path] = []
    for folder in given:
        inside = find(folder)
        if not inside:
            raise InputError("holds no result", file=folder, remedy="name a folder under results/, or `latest`")
        folders += [path for path in inside if path not in folders]
    return folders
