"""`bakeoff run`, `bakeoff show`, `bakeoff validate`: a line-up and its result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from providers.errors import InputError

LineupArgument = Annotated[
    Path | None, typer.Argument(help="The line-up; default: ./bakeoff.toml, or the built-in one.")
]


def run(
    lineup: LineupArgument = None,
    only: Annotated[list[str] | None, typer.Option(help="Only contenders of this label, provider or model.")] = None,
    store: Annotated[list[str] | None, typer.Option(help="Only contenders over this store.")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="How often every query is asked.")] = None,
    out: Annotated[Path, typer.Option(help="Where the result's folder is made.")] = Path("results"),
    offline: Annotated[bool, typer.Option("--offline", help="Make no request: hosted vectors from the cache.")] = False,
    cache: Annotated[bool, typer.Option(help="Keep vectors on disk and reuse them.")] = True,
    max_cost: Annotated[float | None, typer.Option(min=0, help="Stop before this many dollars are passed.")] = None,
) -> None:
    """Run a line-up: fill the matrix, write the result, print the verdict."""
    from dataclasses import replace

    from harness.console import Bars
    from harness.lineup import Lineup
    from harness.record import record
    from harness.runner import Settings
    from harness.runner import run as run_lineup
    from providers.weights import home

    chosen = Lineup.read(lineup_path(lineup)).narrowed(only or (), store or ())
    if rounds is not None:
        chosen = replace(chosen, rounds=rounds)
    if out.exists() and not out.is_dir():
        raise InputError("is not a folder", file=out, remedy="choose another --out")
    settings = Settings(
        cache=home() / "vectors" if cache else None, offline=offline, max_cost=max_cost, progress=Bars()
    )
    folder = record(run_lineup(chosen, settings), out)
    show(folder)
    typer.echo(f"\nWritten to {folder}/")


def show(result: Annotated[Path, typer.Argument(help="A folder under results/.")]) -> None:
    """Print the matrix and the verdict of a result."""
    from harness.console import console
    from harness.report.matrix import terminal
    from harness.results import read_summary

    console().print(terminal(read_summary(result)))


def validate(lineup: LineupArgument = None) -> None:
    """Check a line-up and its task without running anything."""
    from harness.formats import load_task
    from harness.lineup import Lineup

    path = lineup_path(lineup)
    chosen = Lineup.read(path)
    task = load_task(chosen.task, chosen.folder)
    judged = sum(len(grades) for grades in task.judgments.values())
    typer.echo(f"{path}: valid")
    typer.echo(
        f"task {task.name}: {len(task.documents)} documents, {len(task.queries)} queries, "
        f"{judged} judgments, fingerprint {task.fingerprint()}"
    )
    typer.echo(f"measures: {', '.join(map(str, chosen.measures))}; {chosen.primary} decides")
    for query in task.without_relevant():
        typer.echo(f"warning: no document is relevant for query {query}")
    for contender in chosen.contenders:
        typer.echo(f"  {contender.label}: {contender.missing() or 'ready'}")


def lineup_path(given: Path | None) -> Path:
    """The file that was named, the one in this folder, or the one that travels with Bakeoff."""
    from harness.shipped import default_lineup

    here = Path("bakeoff.toml")
    return given or (here if here.is_file() else default_lineup())
