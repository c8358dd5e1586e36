"""`bakeoff init`: a first line-up for one's own files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from bakeoff_providers.errors import InputError

from bakeoff.commands.options import Force, check_file, key_values


def init(
    documents: Annotated[Path | None, typer.Option(help="The documents: CSV, TSV, JSON, JSONL or parquet.")] = None,
    queries: Annotated[Path | None, typer.Option(help="The queries, in one of the same formats.")] = None,
    judgments: Annotated[Path | None, typer.Option(help="Which document answers which query; also TREC qrels.")] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="A column by its name in the file, as documents.text=body; repeatable.")
    ] = None,
    grade: Annotated[list[str] | None, typer.Option(help="What a label is worth, as Exact=3; repeatable.")] = None,
    out: Annotated[Path, typer.Option(help="The line-up to write.")] = Path("bakeoff.toml"),
    force: Force = False,
) -> None:
    """Write a commented line-up for your documents, queries and judgments; asks for what was not given."""
    from bakeoff.testsets.first_lineup import write_lineup

    check_file(out, force=force)
    files = {"documents": documents, "queries": queries, "judgments": judgments}
    chosen = {what: given or _ask(what) for what, given in files.items()}
    for path in chosen.values():
        if not path.is_file():
            raise InputError("no such file", file=path, remedy="check the path; a folder of texts: docs/test-sets.md")
    grades = {}
    for label, text in key_values(grade, "--grade", "Exact=3"):
        if not text.isdecimal():
            raise InputError(f"{label}={text} is no whole number from 0 on", place="--grade", remedy="as Exact=3")
        grades[label] = int(text)
    name = chosen["documents"].resolve().parent.name or "mine"
    given = dict(key_values(column, "--column", "documents.text=body"))
    write_lineup(out, *chosen.values(), name=name, given=given, grades=grades)
    where = "" if out == Path("bakeoff.toml") else f" {out}"
    typer.echo(f"{out}: written, and its task can be read")
    typer.echo(f"next: bakeoff validate{where}\n      bakeoff run{where}")


def _ask(what: str) -> Path:
    """Asks at a terminal; a script must say it."""
    if not sys.stdin.isatty():
        raise InputError(
            f"no {what} were named",
            place=f"--{what}",
            remedy="name the file; if there are none: docs/test-sets.md",
        )
    return Path(typer.prompt(f"The file of the {what}"))
