"""`bakeoff corpus import` and `bakeoff select`: import a corpus, or sample one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from bakeoff_providers.errors import InputError

from bakeoff.cli.command_table import Family
from bakeoff.cli.shared_options import (
    ColumnOption,
    Force,
    check_file,
    parse_columns,
    parse_day,
    read_pipe,
    say,
    say_commands,
    warn,
)
from bakeoff.extensions.testsets.commands.pairs_to_grade import ARTICLES, say_list

corpus = Family(help="Import documents into articles.json.", no_args_is_help=True)


@corpus.command("import")
def import_(
    source: Annotated[
        Path,
        typer.Argument(callback=read_pipe, help="Folder, table, database, -; with --api, a title list."),
    ],
    out: Annotated[Path, typer.Option(help="The file to write.")] = ARTICLES,
    column: ColumnOption = None,
    table: Annotated[str | None, typer.Option(help="Database: the table to read.")] = None,
    api: Annotated[str | None, typer.Option(help="A MediaWiki API; SOURCE is then a list of titles.")] = None,
    whole: Annotated[bool, typer.Option("--whole", help="MediaWiki: whole articles, not only introductions.")] = False,
    chunks: Annotated[
        str | None,
        typer.Option(help="whole, fixed, sentence or semantic chunks."),
    ] = None,
    chunk_size: Annotated[int, typer.Option(min=1, help="Words per chunk.")] = 512,
    force: Force = False,
) -> None:
    """Import documents; empty ones and duplicates are left out."""
    import msgspec

    from bakeoff.core.files import write_json
    from bakeoff.core.printable import pluralise
    from bakeoff.core.task import DocumentChunking
    from bakeoff.extensions.testsets.corpus import LEFT_OUT, Options, import_corpus
    from bakeoff.report.console import Bars

    chunking = None
    try:
        if chunks is not None:
            chunking = msgspec.convert({"chunk_strategy": chunks, "max_chunk_size": chunk_size}, DocumentChunking)
    except msgspec.ValidationError as error:
        raise InputError(str(error), place="--chunks", remedy="whole, fixed, sentence or semantic") from None
    check_file(out, force=force)
    options = Options(parse_columns(column), table, api, whole, chunking, Bars())
    imported = import_corpus(source, options)
    write_json(out, imported.file)
    say(f"{pluralise(len(imported.file.articles), 'document')} imported: {out}")
    for note in imported.notes:
        warn(note)
    if imported.taken:
        say(f"taken: {imported.taken}")
    all_names = f"{out}, metadata.{LEFT_OUT}"
    say_list("empty, left out", imported.empty, all_names)
    say_list("duplicates, left out", [f"{name} = {first}" for name, first in imported.duplicates], all_names)
    say_list("no such page", imported.missing, all_names)
    say_list("skipped", imported.skipped, all_names)
    corpus = "" if out == ARTICLES else f" --articles {out}"
    say_commands(f"next: bakeoff queries import FILE{corpus}\n   or bakeoff queries generate {out}")


def select(
    pool: Annotated[Path, typer.Argument(help="A JSON pool, or a SQLite database such as wikipedia.db.")],
    n: Annotated[int, typer.Option("--n", min=1, help="Number of documents to draw.")] = 25,
    seed: Annotated[int, typer.Option(help="The same seed draws the same documents.")] = 42,
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("evaluate_articles.json"),
    date: Annotated[str | None, typer.Option(help="Selection date, as YYYY-MM-DD; default: today.")] = None,
    table: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Database: the tables of summaries and of articles."),
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
