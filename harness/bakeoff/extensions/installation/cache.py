"""`bakeoff cache`: inspect, prune and clear the vector cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli.command_table import Family
from bakeoff.cli.streams import echo

if TYPE_CHECKING:
    from bakeoff.embedding.cache import Freed

cache = Family(help="Vectors on disk, so that none is paid for twice.", no_args_is_help=True)


@cache.command()
def info() -> None:
    """Show every space: model, role, vectors, size, damage."""
    from bakeoff.embedding.cache import VectorCache
    from bakeoff.report.console import console
    from bakeoff.report.grid import Figures, Grid
    from bakeoff.report.groups import shorten
    from bakeoff.report.numbers import size
    from bakeoff.running.runner import vectors_folder

    spaces = list(VectorCache(vectors_folder()).spaces())
    total, vectors = sum(space.size_bytes for space in spaces), sum(space.vectors for space in spaces)
    echo(f"{vectors:,} vectors, {size(total)}, in {vectors_folder()}")
    if not spaces:
        return
    damaged = any(space.damaged for space in spaces)
    heads = [*map(Figures, ["vectors", *(["damaged"] if damaged else []), "size"]), "space"]
    table = Grid(["provider", "model", "role", *heads])
    for space in spaces:
        provider, model, role = (str(space.identity.get(key, "")) for key in ("provider", "model", "role"))
        counts = [f"{space.vectors:,}", *([f"{space.damaged:,}"] if damaged else []), size(space.size_bytes)]
        table.add_row(provider, shorten(model, 26), role, *counts, space.name[:8])
    console().print(table)


@cache.command()
def prune() -> None:
    """Remove damaged, duplicate and foreign records. Nothing usable is lost."""
    from bakeoff.embedding.cache import VectorCache
    from bakeoff.running.runner import vectors_folder

    _report(VectorCache(vectors_folder()).prune())


@cache.command()
def clear(yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """Delete all vectors, paid ones included, except those in use."""
    from bakeoff.embedding.cache import VectorCache
    from bakeoff.running.runner import vectors_folder

    if not yes:
        typer.confirm(f"Delete every vector in {vectors_folder()}?", abort=True)
    _report(VectorCache(vectors_folder()).clear())


def _report(freed: Freed) -> None:
    echo(f"freed {freed.size_bytes / 1e6:.1f} MB")
    if freed.in_use:
        echo(f"kept, because a run uses them: {freed.in_use} spaces", err=True)
