"""`bakeoff init`: a first line-up for your own task or files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from bakeoff_providers.errors import InputError

from bakeoff.cli.shared_options import (
    OWN_LINEUP,
    Force,
    LabelOption,
    check_file,
    grading_command,
    parse_columns,
    parse_labels,
    say,
    say_commands,
)

FLAGS = "bakeoff init TASK, or bakeoff init --documents FILE --queries FILE [--judgments FILE]"


def init(
    task: Annotated[
        str | None,
        typer.Argument(help="Task folder or name, BEIR folder, mteb:…, hub:… and so on."),
    ] = None,
    documents: Annotated[Path | None, typer.Option(help="The documents: CSV, TSV, JSON, JSONL or parquet.")] = None,
    queries: Annotated[Path | None, typer.Option(help="The queries, in one of the same formats.")] = None,
    judgments: Annotated[Path | None, typer.Option(help="Relevance judgments, also as TREC qrels.")] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="Map a column, such as documents.text=body; repeatable.")
    ] = None,
    grade: LabelOption = None,
    out: Annotated[Path, typer.Option(help="The line-up to write.")] = OWN_LINEUP,
    force: Force = False,
) -> None:
    """Write a commented line-up for your task, or for tables of documents, queries and judgments.

    Prompts for missing arguments. Without judgments, the line-up explains how to grade.
    """
    from dataclasses import replace

    from bakeoff.core.extensions import collect_entries, load_place
    from bakeoff.core.printable import pluralise
    from bakeoff.tasks.ground_truth import FILE
    from bakeoff.tasks.task_sources import Files, missing_weights, source_of, source_of_files, write_lineup

    check_file(out, force=force)
    if task is not None and (documents or queries or judgments):
        raise InputError("give either a task or files, not both", remedy=FLAGS)
    columns = parse_columns(column, "documents.text=body")
    files = Files(documents, queries, judgments, columns, parse_labels(grade))
    if task is None and documents is None:
        task = _ask("A task's folder, or the file of the documents")
    source = source_of(task, out.parent) if task is not None else files
    if isinstance(source, Files):
        files = replace(source, columns=columns, grades=files.grades)
        if files.queries is None:
            files = replace(files, queries=Path(_ask("The file of the queries")))
            if files.judgments is None and sys.stdin.isatty():
                asked = typer.prompt("The file of the judgments (Enter: none yet)", default="", show_default=False)
                files = replace(files, judgments=Path(asked) if asked else None)
        source = source_of_files(files, out.parent)
    elif column or grade:
        raise InputError("--column and --grade are for tables", remedy=FLAGS)
    grading = grading_command(task if task and source.own else out, out)
    loaded = write_lineup(out, source, grading)
    for place in collect_entries("AFTER_INIT").values():
        load_place(place)(out, force=force)
    sizes = f"{pluralise(len(loaded.documents), 'document')}, {pluralise(len(loaded.queries), 'query')}"
    judged = sum(map(len, loaded.judgments.values()))
    say(f"{out}: written; its task has {sizes}, {pluralise(judged, 'judgment') if judged else 'no judgments yet'}")
    for table, columns_taken in source.taken.items():
        say(f"taken from the {table}: {columns_taken}")
    truth = out.parent / FILE
    if source.options and "ground_truth" not in source.options and truth.exists():
        say(f'{truth}: its grades are read; a file of this task\'s own is named under [task]: ground_truth = "…"')
    where = "" if out == OWN_LINEUP else f" {out}"
    steps = [*missing_weights(out), f"bakeoff validate{where}" if judged else grading, f"bakeoff run{where}"]
    say_commands("next: " + "\n      ".join(steps))


def _ask(what: str) -> str:
    """Prompts at a terminal; in a script, a missing argument is an error."""
    if not sys.stdin.isatty():
        raise InputError("not given, and there is no terminal to prompt at", place=what, remedy=FLAGS)
    return str(typer.prompt(what))
