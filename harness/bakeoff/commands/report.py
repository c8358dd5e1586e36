"""`bakeoff report` and `bakeoff serve`: pages from results that are there already."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from bakeoff_providers.errors import InputError


def report(
    result: Annotated[list[Path], typer.Argument(help="Folders under results/, or one that holds several.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The page to write; default: the result's own, or history.html for several."),
    ] = None,
    pictures: Annotated[bool, typer.Option(help="Write the charts as PNG and SVG beside the page.")] = True,
) -> None:
    """Make a result's page, exports and charts again; for several results, one page over time."""
    from bakeoff.core.files import write_atomic
    from bakeoff.report import PAGE, charts, report_files
    from bakeoff.results import schema as results

    found = _found(result)
    if len(found) == 1:
        page = out or found[0] / PAGE
        files = report_files(results.read_summary(found[0]), results.read_detailed(found[0]), pictures=pictures)
    else:
        page = out or Path("history.html")
        files = _history(found, page, pictures=pictures)
    content = files.pop(PAGE)
    for name, text in files.items():
        write_atomic(page.parent / name, text)
    write_atomic(page, content)
    typer.echo(f"Written to {page}" + (f", with {len(files)} files beside it" if files else ""))
    if not charts.available():
        typer.echo(charts.MISSING, err=True)


def _found(given: list[Path]) -> list[Path]:
    from bakeoff.results.schema import find

    found: list[Path] = []
    for folder in given:
        inside = find(folder)
        if not inside:
            raise InputError("holds no result", file=folder, remedy="name a folder under results/")
        found += [path for path in inside if path not in found]
    return found


def _history(found: list[Path], page: Path, *, pictures: bool) -> dict[str, str | bytes]:
    import os
    from urllib.parse import quote

    from bakeoff.report import PAGE, charts, history
    from bakeoff.results import schema as results

    entries = [
        history.Entry(
            name=path.name,
            link=quote(os.path.relpath(path / PAGE, page.parent)) if (path / PAGE).is_file() else "",
            summary=results.read_summary(path),
        )
        for path in found
    ]
    made = history.charts(entries) if charts.available() else []
    drawn: dict[str, str | bytes] = dict(charts.pictures(made)) if pictures and made else {}
    return {PAGE: history.page(entries, made)} | drawn


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
        typer.echo(f"http://{HOST}:{site.server_address[1]}/ shows {folder}; Ctrl-C ends it")
        try:
            site.serve_forever()
        except KeyboardInterrupt:
            typer.echo("ended")
