"""`bakeoff select`: draw a sample and write it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.shared_options import ColumnOption, Force, check_file, parse_columns, parse_day, say, warn


def select(
    pool: Annotated[Path, typer.Argument(help="A JSON pool, or a SQLite database such as wikipedia.db.")],
    n: Annotated[int, typer.Option("--n", min=1, help="How many documents to draw.")] = 25,
    seed: Annotated[int, typer.Option(help="The same seed draws the same documents on every machine.")] = 42,
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("evaluate_articles.json"),
    date: Annotated[str | None, typer.Option(help="selection_date, as YYYY-MM-DD; default: today.")] = None,
    table: Annotated[
        tuple[str, str] | None,
        typer.Option(
            help="Database: the tables of the summaries and of the articles; "
            "default: the only one, or page_summaries and articles."
        ),
    ] = None,
    column: ColumnOption = None,
    force: Force = False,
) -> None:
    """Draw a stratified sample of documents for a task."""
    from bakeoff.core.files import write_json
    from bakeoff.extensions.testsets import select as build

    check_file(out, force=force)
    articles, notes = build.read_pool(pool, parse_columns(column), table)
    drawn = build.select(articles, n, seed, date=parse_day(date, "--date"))
    write_json(out, drawn)
    for note in notes:
        warn(note)
    say(f"{len(drawn.articles)} of {drawn.metadata['total_available']} drawn with seed {seed}: {out}")
