"""`bakeoff corpus-size`: does a bake-off on few documents hold for many?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli.shared_options import (
    AddressOption,
    AsJson,
    ContendersOption,
    EngineOption,
    Force,
    LineupArgument,
    MaxCost,
    Offline,
    VectorsOption,
    check_file,
    lineup_path,
    shard_folders,
    warn,
)
from bakeoff.cli.streams import echo
from bakeoff.core.printable import whole_number

if TYPE_CHECKING:
    from bakeoff.extensions.corpus_size.study import CorpusSizes


def corpus_size(
    lineup: LineupArgument = None,
    contender: ContendersOption = None,
    sizes: Annotated[
        str,
        typer.Option(help="Sample these sizes, e.g. 1000,3000. Default: 100, 300, 1000 …"),
    ] = "",
    documents: Annotated[int | None, typer.Option(min=1, help="Estimate scores for this many documents.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write an HTML page with a chart.")] = None,
    offline: Offline = False,
    vectors: VectorsOption = None,
    engine: EngineOption = None,
    address: AddressOption = None,
    max_cost: MaxCost = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Score nested samples of the corpus to see how scores and order change as it grows.

    By default every sample holds all graded documents and at least a 64th of the corpus. The whole corpus is added.
    """
    import msgspec
    from bakeoff_providers.errors import InputError

    from bakeoff.extensions.corpus_size.report import render
    from bakeoff.extensions.corpus_size.study import corpus_sizes
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars
    from bakeoff.running.engines import engine_entry
    from bakeoff.running.runner import Settings, vectors_folder

    check_file(out, force=force)
    wanted = [whole_number(part.strip().replace("_", "")) for part in sizes.split(",") if part.strip()]
    if None in wanted:
        raise InputError(f"{sizes!r} is not a list of whole numbers", place="--sizes", remedy="write 1000,3000,10000")
    chosen = Lineup.read(lineup_path(lineup)).narrow(contender or (), ())
    settings = Settings(
        cache=vectors_folder(),
        offline=offline,
        max_cost=max_cost,
        progress=Bars(),
        notice=warn,
        engine=engine_entry(chosen.engine, engine, address),
        vectors=shard_folders(vectors),
    )
    by_size = corpus_sizes(chosen, settings, [size for size in wanted if size is not None], documents)
    if not by_size.rows:
        for label, reason in by_size.not_run.items():
            echo(f"{label}: not run: {reason}", err=True)
        echo("error: no contender ran, so there is nothing to compare", err=True)
        raise typer.Exit(1)
    if as_json:
        echo(msgspec.json.format(msgspec.json.encode(by_size), indent=2).decode())
    else:
        _print(by_size)
    if out is None:
        return
    for problem in render(by_size, out):
        echo(problem, err=True)
    if not as_json:
        echo(f"\nWritten to {out}")


def _print(sizes: CorpusSizes) -> None:
    from bakeoff.extensions.corpus_size.report import cells, heading, heads, sentences
    from bakeoff.report.console import console
    from bakeoff.report.grid import Figures, Grid

    screen = console()
    screen.print(heading(sizes))
    table = Grid([head.name if head.is_text else Figures(head.name) for head in heads(sizes)])
    for row in cells(sizes):
        table.add_row(*row)
    screen.print(table)
    for sentence in sentences(sizes):
        screen.print(sentence)
