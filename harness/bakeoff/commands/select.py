"""`bakeoff select`: draw a sample and write it."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated

import typer
from bakeoff_providers.errors import InputError


def select(
    pool: Annotated[Path, typer.Argument(help="A JSON pool, or a SQLite database such as wikipedia.db.")],
    n: Annotated[int, typer.Option("--n", min=1, help="How many documents to draw.")] = 25,
    seed: Annotated[int, typer.Option(help="The same seed draws the same documents on every machine.")] = 42,
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("evaluate_articles.json"),
    date: Annotated[str | None, typer.Option(help="selection_date, as YYYY-MM-DD; default: today.")] = None,
    table: Annotated[
        tuple[str, str], typer.Option(help="Database: the tables of the summaries and of the articles.")
    ] = ("page_summaries", "articles"),
    column: Annotated[list[str] | None, typer.Option(help="Database: another column name, as title=heading.")] = None,
) -> None:
    """Draw a stratified sample of documents for a task."""
    from bakeoff.core.files import write_json
    from bakeoff.testsets import select as build

    drawn = build.select(build.read_pool(pool, column_names(column), table), n, seed, date=day(date, "--date"))
    write_json(out, drawn)
    typer.echo(f"{len(drawn.articles)} of {drawn.metadata['total_available']} drawn with seed {seed}: {out}")


def day(text: str | None, place: str) -> datetime.date | None:
    """A day that an option gives."""
    try:
        return datetime.date.fromisoformat(text) if text else None
    except ValueError:
        raise InputError(f"{text!r} is not a date", place=place, remedy="write it as 2026-11-16") from None


def column_names(given: list[str] | None) -> dict[str, str]:
    """What a table calls its columns, by what we call them."""
    names = {}
    for text in given or ():
        name, found, column = text.partition("=")
        if not found or not column:
            raise InputError(f"{text!r} names no column", place="--column", remedy="write it as title=heading")
        names[name] = column
    return names
