"""`bakeoff embed`: a line-up's vectors, all of them or one shard, without a run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli.shared_options import ContendersOption, LineupArgument, MaxCost, lineup_path, parse_settings, warn
from bakeoff.cli.streams import echo

if TYPE_CHECKING:
    from bakeoff.embedding.cache import Space


def embed(
    out: Annotated[str, typer.Option(help="A folder that all jobs see, or a URL such as s3://bucket/shards.")],
    lineup: LineupArgument = None,
    shard: Annotated[str, typer.Option(help="Which part of how many, as 3/64; the first is 1/64.")] = "1/1",
    contender: ContendersOption = None,
    queries: Annotated[bool, typer.Option("--queries", help="The queries' vectors, too.")] = False,
    set_: Annotated[list[str] | None, typer.Option("--set", help="An option of the task, as k=5.")] = None,
    max_cost: MaxCost = None,
) -> None:
    """Embed one shard of the documents, for `bakeoff run --vectors`; started again, it goes on where it stopped."""
    from pathlib import Path

    from bakeoff.core.progress import showing
    from bakeoff.core.remote import SharedFolder
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars
    from bakeoff.running.embed_shard import embed_shard
    from bakeoff.running.settings import Settings
    from bakeoff.running.shard_folders import ShardNumber
    from bakeoff.tasks.load import task_options

    number, shared = ShardNumber.parse(shard), SharedFolder(out)
    chosen = Lineup.read(lineup_path(lineup)).narrowed(contender or ())
    options = task_options(chosen.task, chosen.folder, parse_settings(set_, "k=5"), Path.cwd())
    chosen = replace(chosen, overrides={**chosen.overrides, **options})
    bars = Bars()
    with showing(bars):
        folder = shared.fetch(number.folder)
    settings = Settings(cache=folder, max_cost=max_cost, progress=bars, notice=warn)
    failed = False

    def saved(space: Space) -> None:
        if shared.remote:
            space.end_shard()
            shared.send(space.folder)

    for one in chosen.per_task():
        for done in embed_shard(one, number, settings, queries=queries, saved=saved):
            failed |= bool(done.failed)
            said = done.failed or f"{done.texts} texts, {done.asked} of them asked for now"
            echo(f"shard {number}, {', '.join(done.labels)}: {said}", err=bool(done.failed))
    if failed:
        raise typer.Exit(1)
