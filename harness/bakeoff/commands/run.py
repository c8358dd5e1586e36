"""`bakeoff run` and `bakeoff show`: a line-up and its result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from bakeoff_providers.errors import InputError

if TYPE_CHECKING:
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.run.runner import Settings

LineupArgument = Annotated[
    Path | None,
    typer.Argument(help="A line-up, or a built-in one's name; default: ./bakeoff.toml, or the built-in one."),
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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be asked and paid.")] = False,
    tune_weights: Annotated[
        bool,
        typer.Option("--tune-weights", help="Fusions: choose weights by cross-validation and tell their score."),
    ] = False,
    weights: Annotated[Path | None, typer.Option(help="Profiles: weights of similarity and keywords, as JSON.")] = None,
    use_best_weights: Annotated[bool, typer.Option(help="Profiles: the weights beside the task, if any.")] = True,
    calibrate_thresholds: Annotated[
        bool, typer.Option("--calibrate-thresholds", help="Profiles: tell which thresholds would fit; applies none.")
    ] = False,
) -> None:
    """Run a line-up: fill the matrix, write the result, print the verdict."""
    import shlex
    import sys
    from dataclasses import replace

    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars
    from bakeoff.results.record import record
    from bakeoff.run.runner import Settings, vectors_folder
    from bakeoff.run.runner import run as run_lineup

    chosen = Lineup.read(lineup_path(lineup)).narrowed(only or (), store or ())
    if rounds is not None:
        chosen = replace(chosen, rounds=rounds)
    overrides: dict[str, Any] = {
        **({"weights_file": str(weights.absolute())} if weights else {}),
        **({} if use_best_weights else {"use_best_weights": False}),
        **({"calibrate_thresholds": True} if calibrate_thresholds else {}),
    }
    chosen = replace(chosen, overrides=overrides)
    if out.exists() and not out.is_dir():
        raise InputError("is not a folder", file=out, remedy="choose another --out")
    settings = Settings(
        cache=vectors_folder() if cache else None,
        offline=offline,
        max_cost=max_cost,
        progress=Bars(),
        notice=lambda text: typer.echo(f"warning: {text}", err=True),
        tune_weights=tune_weights,
    )
    if dry_run:
        _print_plan(chosen, settings)
        return
    command = shlex.join(["bakeoff", *sys.argv[1:]])
    folder = record(run_lineup(chosen, settings), out, command=command, pictures=True)
    show(folder)
    typer.echo(f"\nWritten to {folder}/")


def _print_plan(lineup: Lineup, settings: Settings) -> None:
    from bakeoff.report.console import console, grid
    from bakeoff.run.plan import plan

    table = grid("rows", ">texts", ">in cache", ">tokens (estimate)", ">requests", ">$", ">minutes", "note")
    plans = plan(lineup, settings)
    for each in plans:
        table.add_row(
            ", ".join(each.rows),
            str(each.texts),
            str(each.cached),
            f"{each.tokens:,.0f}",
            str(each.requests),
            "unknown" if each.usd is None else f"{each.usd:.6f}",
            "–" if each.minutes is None else f"{each.minutes:.1f}",
            each.note,
        )
    console().print(table)
    typer.echo(f"in all about ${sum(each.usd or 0 for each in plans):.6f}; nothing was asked")


def show(
    result: Annotated[Path, typer.Argument(help="A folder under results/.")],
    p95: Annotated[float | None, typer.Option(min=0, help="Limit: milliseconds, question to answer.")] = None,
    cost: Annotated[float | None, typer.Option(min=0, help="Limit: dollars for a million documents.")] = None,
    index: Annotated[float | None, typer.Option(min=0, help="Limit: megabytes of the index.")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Limit: no network.")] = False,
) -> None:
    """Print the matrix and the verdict of a result, and the choice within limits where some are given."""
    from bakeoff.report.console import console
    from bakeoff.report.terminal import terminal
    from bakeoff.results.recommend import Limits, choose
    from bakeoff.results.schema import read_summary

    summary = read_summary(result)
    console().print(terminal(summary))
    limits = Limits(p95_ms=p95, usd_per_million=cost, index_mb=index, offline=offline)
    if limits != Limits():
        typer.echo(f"\nWithin these limits: {choose(summary.rows, summary.verdict, limits).sentence}")


def lineup_path(given: Path | None) -> Path:
    """The file that was named, the one in this folder, or the one that travels with Bakeoff."""
    from bakeoff.core.paths import default_lineup, lineup_file

    here = Path("bakeoff.toml")
    return lineup_file(given) if given else here if here.is_file() else default_lineup()
